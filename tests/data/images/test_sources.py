"""The same images from every kind of source: same pixels, labels and class names."""

import json

import numpy as np
import pytest

from oodscope.base.errors import DataError, UsageError
from oodscope.base.files import cache_root
from oodscope.data.images import webdataset as shardindex
from oodscope.data.images.csvlist import open_csv
from oodscope.data.images.folders import open_folder, open_list, open_npz
from oodscope.data.images.huggingface import open_hf
from oodscope.data.images.locating import locate, stem_of
from oodscope.data.images.readability import readable
from oodscope.data.images.webdataset import expand, open_webdataset
from oodscope.data.own import own_benchmark
from tests.data.pictures import pixels, png, save, tar, torn

CLASSES = ["ant, red", "bee"]
NAMES = [CLASSES[row % 2] for row in range(6)]


def hugging_face(images, labels=True):
    datasets = pytest.importorskip("datasets")
    features = {"picture": datasets.Image()}
    columns = {"picture": [{"bytes": png(image), "path": None} for image in images]}
    if labels:
        features |= {"kind": datasets.ClassLabel(names=CLASSES), "note": datasets.Value("string")}
        columns |= {"kind": [row % 2 for row in range(len(images))], "note": ["x"] * len(images)}
    return datasets.Dataset.from_dict(columns, features=datasets.Features(features))


def folder(home, images):
    for row, image in enumerate(images):
        save(home / "folder" / NAMES[row] / f"{row}.png", image)
    return open_folder("s", home / "folder")


def listed(home, images):
    folder(home, images)
    lines = [f"{NAMES[row]}/{row}.png {row % 2}\n" for row in range(len(images))]
    (home / "list.txt").write_text("".join(lines))
    return open_list("s", home / "list.txt", home / "folder")


def table(home, images):
    folder(home, images)
    rows = [f'"{NAMES[row]}/{row}.png","{NAMES[row]}"\n' for row in range(len(images))]
    (home / "list.csv").write_text("path,class\n" + "".join(rows))
    return open_csv("s", home / "list.csv", home / "folder")


def arrays(home, images):
    np.savez(home / "a.npz", images=images, labels=np.arange(len(images)) % 2, class_names=CLASSES)
    return open_npz("s", home / "a.npz")


def shards(home, images):
    for shard in range(2):
        members = []
        for row in range(3 * shard, 3 * shard + 3):
            members += [(f"d/{row}.png", png(images[row])), (f"d/{row}.cls", NAMES[row].encode())]
        tar(home / f"s-{shard:03}.tar", members)
    return open_webdataset("s", home / "s-{000..001}.tar")


def saved(home, images):
    hugging_face(images).save_to_disk(home / "saved")
    return open_hf("s", home / "saved")


def parquet(home, images):
    hugging_face(images).to_parquet(home / "rows.parquet")
    return open_hf("s", home / "rows.parquet", "train")


KINDS = [folder, listed, table, arrays, shards, saved, parquet]


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(tmp_path, kind, monkeypatch):
    if kind is parquet:
        monkeypatch.setattr(pytest.importorskip("datasets").config, "HF_DATASETS_CACHE", tmp_path / "hf")
    images = pixels()
    opened = kind(tmp_path, images)
    # a folder is sorted by class; all others keep the order of the rows
    order = [0, 2, 4, 1, 3, 5] if kind is folder else range(6)
    for position, row in enumerate(order):
        assert np.array_equal(opened.images([position])[0], images[row])
        assert np.array_equal(np.asarray(opened.pictures([position])[0]), images[row])
    assert opened.labels.tolist() == [row % 2 for row in order]
    assert opened.class_names == (("0", "1") if kind is listed else tuple(CLASSES))
    assert len(set(opened.sample_ids())) == 6
    assert len(set(opened.digests())) == 6
    assert kind(tmp_path, images).fingerprint == opened.fingerprint


def test_the_digest_of_encoded_bytes_is_the_same_wherever_they_lie(tmp_path):
    """A file, a member of a tar and a row of a table with equal bytes are duplicates of each other."""
    images = pixels()
    (one, two), three = (kind(tmp_path, images) for kind in (listed, shards)), hugging_face(images)
    three.save_to_disk(tmp_path / "saved")
    assert one.digests() == two.digests() == open_hf("s", tmp_path / "saved").digests()


class TestCsv:
    def write(self, home, text, name="l.csv"):
        for row, image in enumerate(pixels(3)):
            save(home / f"{row}.png", image)
        (home / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return home / name

    def test_further_columns_are_levels(self, tmp_path):
        path = self.write(tmp_path, "path,class,order,site\n0.png,cat,mammal,a\n1.png,ant,insect,b\n")
        opened = open_csv("x", path)
        assert opened.class_names == ("ant", "cat")
        assert opened.labels.tolist() == [1, 0]
        assert {level: column.tolist() for level, column in opened.hierarchy.items()} == {
            "order": ["mammal", "insect"], "site": ["a", "b"],
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("text", "labels", "names"),
        [
            ("path,label\n0.png,1\n1.png,0\n", [1, 0], ("0", "1")),
            ("path,label\n0.png,dog\n1.png,cat\n", [1, 0], ("cat", "dog")),
            ("path,label,class\n0.png,0,dog\n1.png,1,cat\n", [0, 1], ("dog", "cat")),
            ("label,path\n-1,0.png\n0,1.png\n", [-1, 0], ("0",)),
            ("path\n0.png\n1.png\n", [-1, -1], ()),
            ('\ufeffpath,label\r\n"0.png",dog\r\n\r\n1.png,"a ""b"", c"\r\n', [1, 0], ('a "b", c', "dog")),
        ],
    )
    def test_labels_are_numbers_or_names(self, tmp_path, text, labels, names):
        opened = open_csv("x", self.write(tmp_path, text))
        assert opened.labels.tolist() == labels
        assert opened.class_names == names
        assert opened.sample_ids() == ["0.png", "1.png"]

    def test_bytes_that_are_no_text(self, tmp_path):
        path = self.write(tmp_path, b"path,class\n0.png,caf\xe9\n1.png,tea\n")
        assert open_csv("x", path).class_names == ("caf\\xe9", "tea")

    def test_tabs(self, tmp_path):
        path = self.write(tmp_path, "path\tclass\n0.png\ta, b\n1.png\tc\n", "l.TSV")
        assert open_csv("x", path).class_names == ("a, b", "c")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("paht,label\n0.png,1\n", r"no column 'path'\. Did you mean 'paht'\? Its header: paht, label"),
            ("0.png,1\n", r"no column 'path'\..*Its header: 0\.png, 1"),
            ("", "no column 'path'. Its header: none"),
            ("path,label\n", "lists no image"),
            ("path,path\n0.png,1\n", "two columns are called 'path'"),
            ("path,label\n0.png\n", "line 2: 1 fields where the header has 2"),
            ("path,label\n0.png,1\n1.png,cat\n", "line 3: the label 'cat' stands among labels that are numbers"),
            ("path,label\n0.png,cat\n1.png,1\n", "line 3: the label '1' stands among labels that are names"),
            ("path,label\n0.png,1\n1.png,\n", "line 3: no label"),
            ("path,class\n0.png,a\n1.png,\n", "line 3: no class"),
            ("path,class\n0.png,a\n,b\n", "line 3: no path"),
            ("path,label\n0.png,0\n0.png,1\n", r"line 3: '0\.png' is listed already \(.*line 2\)"),
            ("path,label\n0.png,-2\n", "label -2 of image 0 is out of range"),
            ("path,label\n0.png,999999999999\n", "label 999999999999 of image 0 is out of range"),
            ("path,label,class\n0.png,0,a\n1.png,0,b\n", "label 0 is called 'b' here and 'a' before"),
            ("path,label,class\n0.png,0,a\n1.png,1,a\n", "the class 'a' has label 1 here and 0 before"),
            ("path,label,class\n0.png,0,a\n1.png,2,b\n", "line 3: label 2: .* without gaps"),
            ("path,label,class\n0.png,x,a\n1.png,y,b\n", "'label' and 'class' both hold names"),
            ('path,label\n"0.png,1\n', "line 2: unexpected end of data"),
            ("path,label\n0.png,1\n".encode("utf-16"), "is UTF-16; save it as UTF-8"),
        ],
    )
    def test_mistakes_are_named(self, tmp_path, text, message):
        with pytest.raises(DataError, match=message) as caught:
            open_csv("x", self.write(tmp_path, text))
        assert "\n" not in str(caught.value)


class TestShards:
    def members(self, count=4):
        images = pixels(count)
        pairs = [[(f"{row}.png", png(images[row])), (f"{row}.cls", b"%d" % (row % 2))] for row in range(count)]
        return [member for pair in pairs for member in pair]

    def test_labels_in_json(self, tmp_path):
        images = pixels(2)
        content = [(f"{row}.json", json.dumps({"label": row, "more": [1]}).encode()) for row in range(2)]
        tar(tmp_path / "a.tar", [*content, *((f"{row}.PNG", png(images[row])) for row in range(2))])
        opened = open_webdataset("x", tmp_path / "a.tar")
        assert opened.labels.tolist() == [0, 1]
        assert opened.sample_ids() == ["a.tar/0.PNG", "a.tar/1.PNG"]

    def test_no_labels_at_all(self, tmp_path):
        tar(tmp_path / "a.tar", self.members()[::2])
        assert open_webdataset("x", tmp_path / "a.tar").labels.tolist() == [-1] * 4

    def test_the_index_is_kept_until_the_shard_changes(self, tmp_path, monkeypatch):
        path = tar(tmp_path / "a.tar", self.members())
        first = open_webdataset("x", path)
        with monkeypatch.context() as patched:
            patched.setattr(shardindex, "_scan", None)
            again = open_webdataset("x", path)
        assert again.fingerprint == first.fingerprint
        assert np.array_equal(again.images([3])[0], first.images([3])[0])
        for kept in (cache_root() / "shards").glob("*.npz"):
            kept.write_bytes(torn(kept.read_bytes()))
        assert open_webdataset("x", path).fingerprint == first.fingerprint
        tar(path, self.members(6))
        assert len(open_webdataset("x", path)) == 6

    def test_names_lead_nowhere_and_links_are_not_followed(self, tmp_path):
        import tarfile

        home = tmp_path / "deep" / "home"
        home.mkdir(parents=True)
        image = png(pixels(1)[0])
        tar(home / "a.tar", [("../../evil.png", image), ("/etc/b.png", image[:-1] + b"\0")])
        with tarfile.open(home / "a.tar", "a") as archive:
            link = tarfile.TarInfo("link.png")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
        opened = open_webdataset("x", home / "a.tar")
        assert opened.sample_ids() == ["a.tar/../../evil.png", "a.tar//etc/b.png"]
        assert np.array_equal(opened.images([0])[0], pixels(1)[0])
        assert [file.name for file in tmp_path.rglob("*.png")] == []

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda m: m[:3] + m[4:], r"1 of 4 images have no label .*, the first: '1\.png' in .*a\.tar"),
            (lambda m: [*m, ("9.cls", b"1")], "'9' has a label and no image"),
            (lambda m: [*m, ("0.jpg", b"x")], "two images are called '0'"),
            (lambda m: [*m, ("9.png", b"x"), ("9.cls", b"cat")], "'9.png': the label 'cat' stands among"),
            (lambda m: [*m, ("9.png", b"x"), ("9.cls", b"\xff")], r"label '9\.cls' is not UTF-8"),
            (lambda m: [*m, ("9.png", b"x"), ("9.cls", b"")], "no label"),
            (lambda m: [*m, ("9.png", b"x"), ("9.json", b"{")], "not valid JSON"),
            (lambda m: [*m, ("9.png", b"x"), ("9.json", b"[" * 100_000)], "not valid JSON"),
            (lambda m: [*m, ("9.png", b"x"), ("9.json", b'{"label": null}')], "no 'label' or 'class'"),
            (lambda m: [("a.txt", b"x")], "no image in"),
        ],
    )  # fmt: skip
    def test_bad_members(self, tmp_path, change, message):
        tar(tmp_path / "a.tar", change(self.members()))
        with pytest.raises(DataError, match=message):
            open_webdataset("x", tmp_path / "a.tar")

    @pytest.mark.parametrize("cut", ["inside an image", "inside a header", "between two", "before the end mark", "all"])
    def test_a_cut_tar_is_never_taken_for_a_short_one(self, tmp_path, cut):
        path = tar(tmp_path / "a.tar", self.members())
        whole = path.read_bytes()
        starts = [at for at in range(0, len(whole), 512) if whole[at + 257 : at + 262] == b"ustar"]
        assert len(starts) == 8
        length = {
            "inside an image": starts[4] + 600,
            "inside a header": starts[4] + 100,
            "between two": starts[4],
            "before the end mark": starts[-1] + 1024,
            "all": 0,
        }[cut]
        path.write_bytes(whole[:length])
        said = "cut off inside '2.png'" if cut == "inside an image" else "(cut off|not a whole)"
        with pytest.raises(DataError, match=rf"a\.tar: {said}"):
            open_webdataset("x", path)

    def test_joined_and_compressed_tars_are_refused(self, tmp_path):
        import gzip

        path = tar(tmp_path / "a.tar", self.members())
        whole = path.read_bytes()
        path.write_bytes(whole + whole)
        with pytest.raises(DataError, match="goes on after its end mark"):
            open_webdataset("x", path)
        path.write_bytes(gzip.compress(whole))
        with pytest.raises(DataError, match="not a whole, uncompressed tar file"):
            open_webdataset("x", path)

    def test_a_damaged_image_is_named_and_can_be_skipped(self, tmp_path):
        members = self.members()
        members[2] = ("1.png", torn(members[2][1]))
        opened = open_webdataset("x", tar(tmp_path / "a.tar", members))
        with pytest.raises(DataError, match=r"unreadable image '1\.png' in .*a\.tar: .*--skip-unreadable"):
            opened.images([1])
        kept = readable(opened)
        assert kept.skipped == ("a.tar/1.png",)
        assert kept.sample_ids() == ["a.tar/0.png", "a.tar/2.png", "a.tar/3.png"]

    def test_patterns(self, tmp_path):
        for name in ("t-08.tar", "t-09.tar", "t-10.tar", "u-9.tar", "u-10.tar", "odd{1..2}.tar"):
            (tmp_path / name).touch()

        def found(pattern):
            return [path.name for path in expand("x", str(tmp_path / pattern))]

        assert found("t-{08..10}.tar") == ["t-08.tar", "t-09.tar", "t-10.tar"]
        assert found("u-{9..10}.tar") == ["u-9.tar", "u-10.tar"]
        assert found("{t-08,u-9}.tar") == ["t-08.tar", "u-9.tar"]
        assert found("{t,u}-{10..10}.tar") == ["t-10.tar", "u-10.tar"]
        assert found("t-*.tar") == ["t-08.tar", "t-09.tar", "t-10.tar"]
        assert found("odd{1..2}.tar") == ["odd{1..2}.tar"]
        with pytest.raises(DataError, match=r"2 of 5 shards are missing, the first: .*t-06\.tar"):
            found("t-{06..10}.tar")
        with pytest.raises(DataError, match="no file matches"):
            found("v-*.tar")
        for pattern in ("t-{10..08}.tar", "t-{0..99999999}.tar"):
            with pytest.raises(UsageError, match="does not count upwards, or too far"):
                found(pattern)


class TestHuggingFace:
    @pytest.fixture(autouse=True)
    def cache(self, tmp_path, monkeypatch):
        pytest.importorskip("datasets")
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def test_nothing_is_decoded_before_it_is_read_and_digests_are_kept(self, tmp_path, monkeypatch):
        saved(tmp_path, pixels()).digests()
        from oodscope.data.images.huggingface import RowSource

        monkeypatch.setattr(RowSource, "encoded", None)
        assert len(set(open_hf("s", tmp_path / "saved").digests())) == 6

    def test_splits(self, tmp_path):
        import datasets

        images = pixels()
        both = {"train": hugging_face(images[:4]), "test": hugging_face(images[4:])}
        datasets.DatasetDict(both).save_to_disk(tmp_path / "both")
        assert np.array_equal(open_hf("s", tmp_path / "both", "test").images([0])[0], images[4])
        with pytest.raises(DataError, match="has the splits train, test; say which"):
            open_hf("s", tmp_path / "both")
        with pytest.raises(Exception, match="unknown split of set 's' 'tset'. Did you mean 'test'"):
            open_hf("s", tmp_path / "both", "tset")

    def test_columns(self, tmp_path):
        import datasets

        plain = hugging_face(pixels())
        plain.add_column("coarse", [0] * 6).cast_column("coarse", datasets.ClassLabel(names=["animal"])).save_to_disk(
            tmp_path / "two"
        )
        with pytest.raises(DataError, match="the columns kind, coarse hold labels; say which"):
            open_hf("s", tmp_path / "two")
        chosen = open_hf("s", tmp_path / "two", label="kind")
        assert chosen.class_names == tuple(CLASSES)
        assert chosen.hierarchy["coarse"].tolist() == ["animal"] * 6
        with pytest.raises(Exception, match="unknown column of set 's' 'knid'. Did you mean 'kind'"):
            open_hf("s", tmp_path / "two", label="knid")
        hugging_face(pixels(), labels=False).save_to_disk(tmp_path / "bare")
        assert open_hf("s", tmp_path / "bare").labels.tolist() == [-1] * 6
        plain.remove_columns("picture").save_to_disk(tmp_path / "text")
        with pytest.raises(DataError, match="0 of the columns kind, note hold images"):
            open_hf("s", tmp_path / "text")

    def test_a_row_without_an_image_is_named_and_can_be_skipped(self, tmp_path):
        import datasets

        content = [{"bytes": png(pixels()[0]), "path": None}, None, {"bytes": b"no image", "path": None}]
        features = datasets.Features({"image": datasets.Image(decode=False)})
        datasets.Dataset.from_dict({"image": content}, features=features).save_to_disk(tmp_path / "gap")
        opened = open_hf("s", tmp_path / "gap")
        with pytest.raises(DataError, match="unreadable image row 1 of set 's': the row holds no image"):
            opened.images([1])
        assert readable(opened).skipped == ("s/1", "s/2")

    def test_not_there(self, tmp_path):
        with pytest.raises(DataError, match="Hugging Face dataset .*nowhere"):
            open_hf("s", tmp_path / "nowhere")


class TestPlaces:
    @pytest.mark.parametrize(
        ("text", "source", "stem"),
        [
            ("lists/my test.txt", "list", "my test"),
            ("a.CSV", "csv", "a"),
            ("a.tsv", "csv", "a"),
            ("a.npz", "npz", "a"),
            ("x/train-{000..009}.tar", "webdataset", "train"),
            ("hf:user/birds", "hf", "birds"),
            ("hf:user/birds:test", "hf", "birds"),
            ("torchvision:CIFAR10:test", "torchvision", "CIFAR10"),
        ],
    )
    def test_what_a_text_stands_for(self, text, source, stem):
        assert locate(text).source == source
        assert stem_of(text) == stem

    def test_details(self, tmp_path):
        assert (locate("hf:user/birds:test").path, locate("hf:user/birds:test").split) == ("user/birds", "test")
        assert locate("hf:user/birds").split is None
        assert locate("torchvision:CIFAR10:train").options == {"train": True}
        assert locate("torchvision:CIFAR10:test").options == {"train": False}
        assert locate("torchvision:SVHN:extra").options == {"split": "extra"}
        (tmp_path / "odd.txt").mkdir()
        assert locate(str(tmp_path / "odd.txt")).source == "folder"
        for text, message in (
            (tmp_path / "gone", "is not there; images come from a folder"),
            ("torchvision:CIFAR10:val", "no split 'val'; it has train and test"),
            ("torchvision:CIFAR11", "unknown torchvision dataset 'CIFAR11'. Did you mean"),
        ):
            with pytest.raises(Exception, match=message):
                locate(str(text))

    def test_sets_are_called_like_their_folders_and_never_alike(self, tmp_path):
        for row, name in enumerate(("test/0", "test/1", "a/noise", "b/noise", "c/id_val", "snow")):
            save(tmp_path / name / "1.png", pixels(8)[row])
        bench = own_benchmark(
            id_test=tmp_path / "test",
            near=[tmp_path / "a" / "noise", str(tmp_path / "snow") + "/"],
            far=[tmp_path / "b" / "noise", tmp_path / "c" / "id_val"],
            csid={"dusk": tmp_path / "test"},
        )
        assert [images.name for _, images in bench.members()] == [
            "id_test", "a_noise", "snow", "b_noise", "c_id_val", "dusk",
        ]  # fmt: skip
        with pytest.raises(DataError, match="two sets are called 'x'"):
            own_benchmark(id_test=tmp_path / "test", near={"x": tmp_path / "snow"}, far={"x": tmp_path / "a"})
        with pytest.raises(UsageError, match=r"near takes several sets: write near=\[...\]"):
            own_benchmark(id_test=tmp_path / "test", near=tmp_path / "snow")

    def test_the_version_follows_the_content(self, tmp_path):
        for row, name in enumerate(("test/0", "test/1", "far")):
            save(tmp_path / name / "1.png", pixels(8)[row])

        def version():
            return own_benchmark(id_test=tmp_path / "test", far=[tmp_path / "far"]).version

        first = version()
        assert version() == first
        save(tmp_path / "far" / "2.png", pixels(8)[5])
        assert version() != first
