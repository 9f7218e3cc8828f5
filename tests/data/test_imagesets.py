"""ImageSets from arrays, folders, lists, npz files and datasets."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from oodscope.base.errors import DataError, StorageError
from oodscope.data.images import filedigests
from oodscope.data.images.filehashes import FileHashes
from oodscope.data.images.files import FileSource
from oodscope.data.images.folders import open_folder, open_list, open_npz
from oodscope.data.images.readability import readable
from oodscope.data.imageset import ImageSet
from oodscope.data.manifest import FolderSpec

RNG = np.random.default_rng(0)


def picture(path, mode="RGB", size=(9, 7)):
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (size[1], size[0]) if mode in ("L", "I;16") else (size[1], size[0], len(mode))
    pixels = RNG.integers(0, 256, size=shape)
    if mode == "I;16":
        Image.fromarray((pixels * 257).astype(np.uint16)).save(path)
    else:
        Image.fromarray(pixels.astype(np.uint8), mode).save(path)
    return pixels.astype(np.uint8)


class TestArrays:
    def test_holds_what_it_was_given(self):
        pixels = RNG.integers(0, 256, size=(5, 4, 4, 3)).astype(np.uint8)
        made = ImageSet.from_arrays("a", pixels, [0, 1, 0, 1, 1], ["x", "y"])
        assert len(made) == 5
        assert np.array_equal(made.images([3])[0], pixels[3])
        assert made.sample_ids()[3] == "a/3"
        assert repr(made) == "ImageSet('a', 5 images, 2 classes)"

    @pytest.mark.parametrize(
        ("pixels", "labels", "names", "message"),
        [
            (np.zeros((0, 4, 4), np.uint8), None, (), "set 'a' is empty"),
            (np.zeros((2, 4, 4), np.float32), None, (), "must be uint8"),
            (np.zeros((2, 4), np.uint8), None, (), r"must have shape \[N, H, W\]"),
            (np.zeros((2, 4, 4), np.uint8), [0], (), "2 images need 2 labels"),
            (np.zeros((2, 4, 4), np.uint8), [0, 2], ["x", "y"], r"label 2 of image 1 is out of range 0\.\.1"),
            (np.zeros((2, 4, 4), np.uint8), [-2, 0], ["x", "y"], "label -2 of image 0 is out of range"),
            (np.zeros((2, 4, 4), np.uint8), [0.5, 1], (), "labels must be integers"),
        ],
    )
    def test_bad_input(self, pixels, labels, names, message):
        with pytest.raises(DataError, match=message):
            ImageSet.from_arrays("a", pixels, labels, names)

    def test_fingerprint_follows_content_order_and_labels(self):
        pixels = RNG.integers(0, 256, size=(4, 4, 4, 3)).astype(np.uint8)
        base = ImageSet.from_arrays("a", pixels, [0, 1, 0, 1])
        changed = pixels.copy()
        changed[2, 0, 0, 0] ^= 1
        prints = [
            base.fingerprint,
            ImageSet.from_arrays("a", changed, [0, 1, 0, 1]).fingerprint,
            ImageSet.from_arrays("a", pixels[::-1], [0, 1, 0, 1]).fingerprint,
            ImageSet.from_arrays("a", pixels, [0, 1, 1, 1]).fingerprint,
            base.take([0, 1, 2]).fingerprint,
        ]
        assert len(set(prints)) == 5
        assert ImageSet.from_arrays("other name", pixels.copy(), [0, 1, 0, 1]).fingerprint == base.fingerprint

    def test_a_subset_of_a_subset_keeps_the_source(self):
        pixels = RNG.integers(0, 256, size=(6, 4, 4)).astype(np.uint8)
        levels = {"group": list("aabbcc")}
        whole = ImageSet.from_arrays("a", pixels, list(range(6)), hierarchy=levels)
        part = whole.take([5, 3, 1]).take([2, 0])
        assert part.source is whole.source
        assert part.labels.tolist() == [1, 5]
        assert part.hierarchy["group"].tolist() == ["a", "c"]
        assert np.array_equal(part.images([1])[0], pixels[5])

    def test_labels_move_to_other_classes_by_name(self):
        pixels = RNG.integers(0, 256, size=(4, 4, 4)).astype(np.uint8)
        own = ImageSet.from_arrays("a", pixels, [0, 1, -1, 1], ["cat", "ant"], hierarchy={"level": list("wxyz")})
        moved = own.take([3, 2, 1, 0]).in_classes(["bee", "ant", "cow", "cat"])
        assert moved.labels.tolist() == [1, -1, 1, 3]
        assert moved.class_names == ("bee", "ant", "cow", "cat")
        assert moved.hierarchy["level"].tolist() == list("zyxw")
        assert moved.source is own.source
        assert moved.rows.tolist() == [3, 2, 1, 0]
        with pytest.raises(DataError, match="set 'a' has the class 'ant', which is not among"):
            own.in_classes(["bee", "cat"])


class TestFolders:
    def test_subfolders_are_classes_in_sorted_order(self, tmp_path):
        for name in ("zebra/1.png", "ant/2.JPG", "ant/deep/3.png", "ant/notes.txt"):
            if name.endswith("txt"):
                (tmp_path / name).write_text("no image")
            else:
                picture(tmp_path / name)
        opened = open_folder("animals", tmp_path)
        assert opened.class_names == ("ant", "zebra")
        assert opened.sample_ids() == ["ant/2.JPG", "ant/deep/3.png", "zebra/1.png"]
        assert opened.labels.tolist() == [0, 0, 1]

    def test_a_flat_folder_has_no_classes(self, tmp_path):
        pixels = picture(tmp_path / "1.png")
        opened = open_folder("flat", tmp_path)
        assert opened.labels.tolist() == [-1]
        assert np.array_equal(opened.images([0])[0], pixels)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda p: None, r"no image under .*looked for .*\.png"),
            (lambda p: (picture(p / "a" / "1.png"), picture(p / "2.png")), "class folders and 1 images beside them"),
        ],
    )
    def test_bad_folders(self, tmp_path, make, message):
        make(tmp_path)
        with pytest.raises(DataError, match=message):
            open_folder("x", tmp_path)

    def test_no_folder(self, tmp_path):
        with pytest.raises(DataError, match="is not a folder"):
            open_folder("x", tmp_path / "nowhere")

    def test_a_link_loop_ends(self, tmp_path):
        picture(tmp_path / "a" / "1.png")
        (tmp_path / "a" / "again").symlink_to(tmp_path)
        assert len(open_folder("x", tmp_path)) == 1

    @pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "CMYK", "I;16"])
    def test_every_mode_is_read(self, tmp_path, mode):
        suffix = {"CMYK": "jpg"}.get(mode, "png")
        pixels = picture(tmp_path / f"1.{suffix}", mode)
        read = open_folder("x", tmp_path).images([0])[0]
        assert read.dtype == np.uint8
        if mode in ("L", "RGB"):
            assert np.array_equal(read, pixels)
        elif mode == "I;16":
            assert np.array_equal(read[:, :, 0], pixels)
        else:
            assert read.shape == (7, 9, 3)

    def test_an_unreadable_image_is_named_and_can_be_skipped(self, tmp_path):
        picture(tmp_path / "a" / "good.png")
        picture(tmp_path / "b" / "good.png")
        (tmp_path / "a" / "empty.png").write_bytes(b"")
        whole = (tmp_path / "b" / "good.png").read_bytes()
        (tmp_path / "b" / "torn.png").write_bytes(whole[: len(whole) // 2])
        opened = open_folder("x", tmp_path)
        with pytest.raises(DataError, match=r"unreadable image .*a/empty\.png.*--skip-unreadable"):
            opened.images(range(4))
        kept = readable(opened)
        assert kept.sample_ids() == ["a/good.png", "b/good.png"]
        assert kept.skipped == ("a/empty.png", "b/torn.png")
        assert kept.labels.tolist() == [0, 1]


class TestNestedFolders:
    TREE = ("flowers/rose/1.png", "flowers/rose/2.png", "flowers/lily/1.png", "trees/oak/old/1.png", "trees/oak/1.png")

    def open(self, tmp_path, files, *levels):
        for name in files:
            picture(tmp_path / name)
        return open_folder("x", tmp_path, levels)

    def test_are_levels_of_a_hierarchy(self, tmp_path):
        opened = self.open(tmp_path, self.TREE, "superclass", "class")
        assert opened.class_names == ("lily", "oak", "rose")
        assert opened.sample_ids() == sorted(self.TREE)
        assert [opened.class_names[label] for label in opened.labels] == ["lily", "rose", "rose", "oak", "oak"]
        assert {level: column.tolist() for level, column in opened.hierarchy.items()} == {
            "superclass": ["flowers"] * 3 + ["trees"] * 2
        }

    def test_the_class_may_lie_above_the_deepest_level(self, tmp_path):
        files = ("dogs/young/1.png", "dogs/old/1.png", "cats/young/1.png")
        opened = self.open(tmp_path, files, "class", "age")
        assert opened.class_names == ("cats", "dogs")
        assert opened.labels.tolist() == [0, 1, 1]
        assert opened.hierarchy["age"].tolist() == ["young", "old", "young"]

    def test_without_a_level_called_class_the_last_one_is_it(self, tmp_path):
        opened = self.open(tmp_path, self.TREE, "kind", "species")
        assert opened.class_names == ("lily", "oak", "rose")
        assert list(opened.hierarchy) == ["kind"]

    def test_a_benchmark_may_declare_them(self, tmp_path):
        self.open(tmp_path, self.TREE, "superclass", "class")
        spec = FolderSpec(source="folder", path="", levels=["superclass", "class"])
        assert set(spec.open("x", tmp_path).hierarchy) == {"superclass"}

    @pytest.mark.parametrize(
        ("files", "levels", "message"),
        [
            (("a/b/1.png", "a/2.png"), "sc", r"folders of 2 levels \(s/c\) and 1 images beside .*the first: a/2\.png"),
            (("1.png",), "sc", "1 images beside them"),
            (("a/b/1.png", "c/b/1.png"), "sc", "the c 'b' lies under 'a' and 'c'"),
            (("a/b/c/1.png", "a/d/c/1.png"), "rsc", "the c 'c' lies under 'a/b' and 'a/d'"),
            (("a/b/1.png",), "ss", "need names of their own"),
            (("a/b/1.png",), "", "need names of their own"),
        ],
    )
    def test_errors(self, tmp_path, files, levels, message):
        with pytest.raises(DataError, match=message):
            self.open(tmp_path, files, *levels)

    @pytest.mark.parametrize("empty", ["trees/elm", "moss"])
    def test_an_empty_folder_is_named_at_every_level(self, tmp_path, empty):
        (tmp_path / empty).mkdir(parents=True)
        (tmp_path / ".hidden").mkdir()
        with pytest.raises(DataError, match=f"the class folder .*/{empty} holds no image"):
            self.open(tmp_path, self.TREE, "superclass", "class")


class TestLists:
    def test_paths_may_contain_spaces(self, tmp_path):
        picture(tmp_path / "images" / "my cat 1.png")
        picture(tmp_path / "images" / "dog.png")
        (tmp_path / "list.txt").write_text("my cat 1.png 3\n\ndog.png -1\n")
        opened = open_list("x", tmp_path / "list.txt", tmp_path / "images")
        assert opened.sample_ids() == ["my cat 1.png", "dog.png"]
        assert opened.labels.tolist() == [3, -1]

    @pytest.mark.parametrize("line", ["just-a-path.png", "a.png cat", "7"])
    def test_a_bad_line_is_named(self, tmp_path, line):
        (tmp_path / "list.txt").write_text(f"ok.png 1\n{line}\n")
        with pytest.raises(DataError, match="list.txt, line 2: expected 'path label'"):
            open_list("x", tmp_path / "list.txt")

    def test_missing_list_and_missing_image(self, tmp_path):
        with pytest.raises(DataError, match="cannot read the list"):
            open_list("x", tmp_path / "list.txt")
        (tmp_path / "list.txt").write_text("gone.png 1\n")
        with pytest.raises(DataError, match=r"unreadable image .*gone\.png: no such file"):
            open_list("x", tmp_path / "list.txt").images([0])
        with pytest.raises(DataError, match=r"1 of 1 image files is missing, the first: .*gone\.png"):
            open_list("x", tmp_path / "list.txt").digests()


class TestNpz:
    def test_reads_arrays_labels_and_names(self, tmp_path):
        pixels = RNG.integers(0, 256, size=(3, 4, 4)).astype(np.uint8)
        np.savez(tmp_path / "x.npz", images=pixels, labels=[0, 1, 1], class_names=["p", "q"])
        opened = open_npz("x", tmp_path / "x.npz")
        assert opened.class_names == ("p", "q")
        assert np.array_equal(opened.images([1])[0], pixels[1])

    def test_bad_files(self, tmp_path):
        np.savez(tmp_path / "x.npz", image=np.zeros((1, 2, 2), np.uint8))
        with pytest.raises(DataError, match="no array 'images'. Did you mean 'image'"):
            open_npz("x", tmp_path / "x.npz")
        np.savez(tmp_path / "evil.npz", images=np.array([{}], dtype=object))
        with pytest.raises(DataError, match="cannot read"):
            open_npz("x", tmp_path / "evil.npz")
        (tmp_path / "torn.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:50])
        with pytest.raises(DataError, match="cannot read"):
            open_npz("x", tmp_path / "torn.npz")


class TestDatasets:
    def test_a_torchvision_style_dataset(self, tmp_path):
        from torchvision.datasets import ImageFolder

        pixels = picture(tmp_path / "b" / "1.png")
        picture(tmp_path / "a" / "1.png")
        made = ImageSet.from_dataset("d", ImageFolder(tmp_path))
        assert made.class_names == ("a", "b")
        assert made.labels.tolist() == [0, 1]
        assert np.array_equal(made.images([1])[0], pixels)

    def test_normalised_tensors_are_refused(self):
        import torch

        made = ImageSet.from_dataset("d", [(torch.zeros(3, 4, 4), 0), (torch.zeros(3, 4, 4), 1)])
        with pytest.raises(DataError, match="build it without a transform"):
            made.images([0])


class TestFileDigests:
    @pytest.fixture
    def hashed(self, monkeypatch):
        """The files whose bytes are read."""
        read, plain = [], filedigests.hash_file
        monkeypatch.setattr(filedigests, "hash_file", lambda path: read.append(Path(path).name) or plain(path))
        return read

    def digests(self, folder, names):
        return FileSource(folder, names).digests

    def test_of_the_bytes(self, tmp_path):
        (tmp_path / "x").write_bytes(b"one")
        assert self.digests(tmp_path, ["x"]) == [hashlib.blake2b(b"one", digest_size=16).digest()]

    def test_remembered_until_a_file_changes(self, tmp_path, hashed):
        for name in "abc":
            (tmp_path / name).write_bytes(name.encode())
        first = self.digests(tmp_path, list("abc"))
        assert hashed == list("abc")
        assert self.digests(tmp_path, list("abc")) == first
        assert hashed == list("abc")
        (tmp_path / "b").write_bytes(b"two!")
        changed = self.digests(tmp_path, list("abc"))
        assert [one == two for one, two in zip(first, changed)] == [True, False, True]
        assert hashed == [*"abc", "b"]

    def test_a_part_of_a_known_set_is_known(self, tmp_path, hashed):
        for name in ("u/a", "u/b", "v/a"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(name.encode())
        whole = self.digests(tmp_path, ["u/a", "u/b", "v/a"])
        assert self.digests(tmp_path, ["v/a", "u/b"]) == [whole[2], whole[1]]
        assert self.digests(tmp_path / "v", ["a"]) == [whole[2]]
        assert len(hashed) == 3

    def test_a_damaged_manifest_costs_nothing_but_time(self, tmp_path, hashed, monkeypatch):
        monkeypatch.setenv("OODSCOPE_CACHE", str(tmp_path / "cache"))
        (tmp_path / "a").write_bytes(b"a")
        first = self.digests(tmp_path, ["a"])
        (kept,) = (tmp_path / "cache" / "manifests").iterdir()
        whole = kept.read_bytes()
        for content in (b"", whole[:40], b"x" * len(whole), whole[:-9]):
            kept.write_bytes(content)
            assert self.digests(tmp_path, ["a"]) == first
        assert hashed == ["a"]

    def test_known_files_need_no_cache_to_write_to(self, tmp_path, monkeypatch):
        monkeypatch.setenv("OODSCOPE_CACHE", str(tmp_path / "cache"))
        (tmp_path / "a").write_bytes(b"a")
        first = self.digests(tmp_path, ["a"])
        monkeypatch.setattr("oodscope.data.images.filedigests.FileHashes", None)
        monkeypatch.setattr("oodscope.data.images.filedigests.atomic_path", None)
        assert self.digests(tmp_path, ["a"]) == first

    def test_a_broken_cache_says_what_to_do(self, tmp_path):
        (tmp_path / "hashes").write_text("no database, but long enough to be taken for one" * 30)
        with pytest.raises(StorageError, match="it is only a cache, delete it"), FileHashes(tmp_path / "hashes"):
            pass
