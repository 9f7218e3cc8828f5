"""Data as they come: every oddity is read as documented or named, and nothing is lost without a word."""

import io
import os
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from oodscope.base.errors import DataError, OodscopeError
from oodscope.data.images import filedigests
from oodscope.data.images.decoding import UnreadableImageError, decode
from oodscope.data.images.files import FileSource
from oodscope.data.images.folders import open_folder, open_list
from oodscope.data.images.readability import readable
from oodscope.data.imageset import ImageSet
from oodscope.data.loading import load_benchmark
from oodscope.data.own import own_benchmark
from tests.data.pictures import pixels, png, save, torn
from tests.examples import examples


def written(picture, suffix, **options):
    stream = io.BytesIO()
    picture.save(stream, suffix, **options)
    return io.BytesIO(stream.getvalue())


def colours(mode):
    """A picture of this mode that is not uniform."""
    rgb = Image.fromarray(pixels(1)[0])
    if mode == "RGBA":
        rgb.putalpha(Image.fromarray(pixels(1, seed=1)[0, :, :, 0]))
        return rgb
    return rgb.convert(mode)


class TestModes:
    @pytest.mark.parametrize(
        ("mode", "suffix"),
        [("RGB", "PNG"), ("RGBA", "PNG"), ("LA", "PNG"), ("P", "PNG"), ("P", "GIF"), ("1", "PNG"), ("CMYK", "JPEG")],
    )
    def test_as_torchvisions_loader_reads_it(self, mode, suffix):
        """Transparency is dropped, not blended: that is what published numbers were made with."""
        file = written(colours(mode), suffix)
        expected = np.asarray(Image.open(file).convert("RGB"))
        assert expected.std() > 0
        assert np.array_equal(np.asarray(decode(io.BytesIO(file.getvalue()), "x")), expected)

    @pytest.mark.parametrize("transparency", [3, bytes(range(256))])
    def test_a_palette_with_transparency(self, transparency):
        file = written(colours("P"), "PNG", transparency=transparency)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read = np.asarray(decode(file, "x"))
        assert np.array_equal(read, np.asarray(colours("P").convert("RGB")))

    def test_grey_stays_grey(self):
        read = decode(written(colours("L"), "PNG"), "x")
        assert read.mode == "L"
        assert np.array_equal(np.asarray(read), np.asarray(colours("L")))

    def test_sixteen_bits_are_scaled_and_not_clipped(self):
        values = np.array([[0, 128, 129, 257, 32896, 65535]], dtype=np.uint16)
        for suffix in ("PNG", "TIFF"):
            read = np.asarray(decode(written(Image.fromarray(values), suffix), "x"))
            assert read[0, :, 0].tolist() == [0, 0, 1, 1, 128, 255]

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (np.array([[0.5, 1.0]], dtype=np.float32), "floating-point"),
            (np.array([[0, 70000]], dtype=np.int32), "more than 16 bits"),
            (np.array([[-1, 5]], dtype=np.int32), "more than 16 bits"),
        ],
    )
    def test_pixels_of_unknown_range_are_refused(self, values, message):
        with pytest.raises(UnreadableImageError, match=f"unreadable image x: .*{message}"):
            decode(written(Image.fromarray(values), "TIFF"), "x")

    @pytest.mark.parametrize("suffix", ["GIF", "WEBP", "PNG"])
    def test_an_animation_gives_its_first_frame(self, suffix):
        first, second = Image.new("RGB", (8, 8), (255, 0, 0)), Image.new("RGB", (8, 8), (0, 0, 255))
        lossless = {"lossless": True} if suffix == "WEBP" else {}
        file = written(first, suffix, save_all=True, append_images=[second], **lossless)
        assert Image.open(file).n_frames == 2
        assert np.asarray(decode(io.BytesIO(file.getvalue()), "x"))[4, 4].tolist() == [255, 0, 0]

    def test_the_orientation_a_camera_wrote_is_not_applied(self):
        exif = Image.Exif()
        exif[0x0112] = 6  # to be turned by a quarter
        read = decode(written(Image.fromarray(pixels(1)[0]), "JPEG", exif=exif), "x")
        assert read.size == (9, 7)

    def test_a_decompression_bomb_is_not_unpacked(self):
        def chunk(kind, body):
            return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

        header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
        bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
        with pytest.raises(UnreadableImageError, match="decompression bomb"):
            decode(io.BytesIO(bomb), "x")

    @examples(150)
    @given(st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF"]), st.data())
    def test_a_damaged_file_is_a_picture_or_one_line(self, suffix, data):
        content = bytearray(written(Image.fromarray(pixels(1)[0]), suffix).getvalue())
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        content = content[: data.draw(st.integers(0, len(content)))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                assert decode(io.BytesIO(bytes(content)), "x").mode in ("L", "RGB")
            except UnreadableImageError as error:
                assert "\n" not in str(error)


class TestFolders:
    def test_an_empty_class_folder_would_shift_the_others(self, tmp_path):
        save(tmp_path / "a" / "1.png", pixels()[0])
        save(tmp_path / "c" / "1.PNG", pixels()[1])
        (tmp_path / ".cache").mkdir()
        assert open_folder("x", tmp_path).class_names == ("a", "c")
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "notes.txt").write_text("to do")
        with pytest.raises(DataError, match=r"the class folder .*/b holds no image; remove it"):
            open_folder("x", tmp_path)

    def test_classes_that_differ_by_case_are_two(self, tmp_path):
        save(tmp_path / "Cat" / "1.png", pixels()[0])
        save(tmp_path / "cat" / "1.png", pixels()[1])
        if len(list(tmp_path.iterdir())) < 2:
            pytest.skip("this file system does not tell case")
        opened = open_folder("x", tmp_path)
        assert opened.class_names == ("Cat", "cat")
        assert opened.labels.tolist() == [0, 1]

    def test_test_classes_that_training_does_not_know(self, tmp_path):
        for row, name in enumerate(("train/Cat", "train/dog", "test/cat", "test/dog", "far")):
            save(tmp_path / name / "1.png", pixels()[row])
        with pytest.raises(DataError, match=r"id_test .* has the class 'cat', which is not among .*Did you mean 'Cat'"):
            own_benchmark(id_train=tmp_path / "train", id_test=tmp_path / "test", far=[tmp_path / "far"])

    def test_links(self, tmp_path):
        """A loop ends, a class that is a link to another keeps its images, a dead link is named."""
        save(tmp_path / "a" / "1.png", pixels()[0])
        (tmp_path / "a" / "up").symlink_to(tmp_path)
        (tmp_path / "b").symlink_to(tmp_path / "a")
        opened = open_folder("x", tmp_path)
        assert opened.sample_ids() == ["a/1.png", "b/1.png"]
        (tmp_path / "a" / "2.png").symlink_to(tmp_path / "nowhere.png")
        with pytest.raises(DataError, match=r"2 of 4 image files are missing, the first: .*a/2\.png"):
            open_folder("x", tmp_path).digests()
        assert readable(open_folder("x", tmp_path)).skipped == ("a/2.png", "b/2.png")

    def test_what_is_no_file_is_no_image(self, tmp_path):
        save(tmp_path / "1.png", pixels()[0])
        os.mkfifo(tmp_path / "pipe.png")
        save(tmp_path / "folder.png" / "notes.txt.gif", pixels()[1])
        with pytest.raises(DataError, match="class folders and 1 images beside them"):
            open_folder("x", tmp_path)

    def test_a_name_that_is_no_text(self, tmp_path):
        home = tmp_path / "home"
        home.mkdir()
        folder = os.fsencode(home) + b"/caf\xe9"
        try:
            Path(os.fsdecode(folder)).mkdir()
        except OSError:
            pytest.skip("this file system takes UTF-8 names only")
        save(home / "tea" / "1.png", pixels()[0])
        with open(folder + b"/\xff.png", "wb") as stream:
            stream.write(png(pixels()[1]))
        opened = open_folder("x", home)
        assert opened.class_names == ("caf\\xe9", "tea")
        assert opened.sample_ids() == ["caf\\xe9/\\xff.png", "tea/1.png"]
        assert np.array_equal(opened.images([0])[0], pixels()[1])
        assert len(opened.fingerprint) == len(open_folder("x", home).fingerprint) == 64
        (home / "list.txt").write_bytes(b"caf\xe9/\xff.png 1\ntea/1.png 0\n")
        assert open_list("x", home / "list.txt").digests() == opened.digests()


class TestLists:
    def test_windows_line_ends_and_byte_order_mark(self, tmp_path):
        for name in ("a b.png", "c.png"):
            save(tmp_path / name, pixels()[0])
        (tmp_path / "l.txt").write_bytes(b"\xef\xbb\xbfa b.png 0\r\nc.png 1\r\n\r\n")
        opened = open_list("x", tmp_path / "l.txt")
        assert opened.sample_ids() == ["a b.png", "c.png"]
        assert opened.labels.tolist() == [0, 1]
        assert len(opened.digests()) == 2

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a.png 1\nb.png cat\n", "line 2: expected 'path label' with a number as label, got 'b.png cat'"),
            ("a.png 1\nb.png 1_0\n", "line 2: expected 'path label'"),
            ("a.png 0\n\nb.png 1\na.png 0\n", r"line 4: 'a\.png' is listed already \(.*line 1\); remove one"),
            ("a.png -7\n", "label -7 of image 0 is out of range"),
            ("a.png 123456789012345678\n", "out of range"),
            ("", "set 'x' is empty"),
        ],
    )
    def test_wrong_lines(self, tmp_path, text, message):
        (tmp_path / "l.txt").write_text(text)
        with pytest.raises(DataError, match=message):
            open_list("x", tmp_path / "l.txt")


class TestMissingAndDamaged:
    @pytest.fixture
    def manifest(self, tmp_path):
        for row in range(6):
            save(tmp_path / f"{row}.png", pixels(8)[row])
        (tmp_path / "4.png").write_bytes(b"")
        (tmp_path / "5.png").write_bytes(torn((tmp_path / "5.png").read_bytes()))
        (tmp_path / "id.txt").write_text("0.png 0\n1.png 1\n")
        lines = ["2.png", "gone.png", "3.png", "lost.png", "4.png", "5.png"]
        (tmp_path / "far.txt").write_text("".join(f"{name} -1\n" for name in lines))
        path = tmp_path / "b.yaml"
        path.write_text(
            "name: b\nversion: '1'\nsets:\n  id_test: {source: list, path: id.txt}\n"
            "  far: {f: {source: list, path: far.txt}}\n"
        )
        return path

    def test_missing_files_are_counted_before_the_run(self, manifest):
        with pytest.raises(DataError, match=r"2 of 6 image files are missing, the first: .*gone\.png.*--skip-unread"):
            load_benchmark(manifest)

    def test_skipping_leaves_out_what_is_missing_or_damaged_and_says_so(self, manifest):
        (far,) = load_benchmark(manifest, skip_unreadable=True).far
        assert far.sample_ids() == ["2.png", "3.png"]
        assert far.skipped == ("gone.png", "lost.png", "4.png", "5.png")
        assert len(far.digests()) == 2
        assert np.array_equal(far.images([1])[0], pixels(8)[3])

    def test_nothing_left(self, tmp_path):
        (tmp_path / "l.txt").write_text("gone.png 0\n")
        with pytest.raises(DataError, match="none of its 1 images is there"):
            readable(open_list("x", tmp_path / "l.txt"))
        (tmp_path / "gone.png").write_bytes(b"no image")
        with pytest.raises(DataError, match="none of its 1 images can be decoded"):
            readable(open_list("x", tmp_path / "l.txt"))

    def test_labels_levels_and_rows_of_a_subset_survive_skipping(self, tmp_path):
        for row in range(5):
            save(tmp_path / f"{row}.png", pixels(8)[row])
        (tmp_path / "1.png").write_bytes(b"")
        source = FileSource(tmp_path, [f"{row}.png" for row in range(5)])
        whole = ImageSet("x", source, [0, 1, 2, 3, 4], list("abcde"), hierarchy={"level": list("vwxyz")})
        kept = readable(whole.take([4, 1, 2]))
        assert kept.sample_ids() == ["4.png", "2.png"]
        assert kept.labels.tolist() == [4, 2]
        assert kept.hierarchy["level"].tolist() == ["z", "x"]
        assert kept.skipped == ("1.png",)
        assert readable(whole.take([0, 4])).skipped == ()

    def test_what_was_decoded_once_is_not_tried_again(self, tmp_path, monkeypatch):
        for row in range(3):
            save(tmp_path / f"{row}.png", pixels(8)[row])
        (tmp_path / "1.png").write_bytes(b"")
        assert readable(open_folder("x", tmp_path)).skipped == ("1.png",)
        tried = []
        monkeypatch.setattr(FileSource, "_decodes", lambda self, row: tried.append(row) or False)
        assert readable(open_folder("x", tmp_path)).skipped == ("1.png",)
        assert tried == [1]


def test_hashes_are_kept_as_they_are_made(tmp_path, monkeypatch):
    """A killed run, or another process beside it, finds what was hashed so far."""
    monkeypatch.setattr(filedigests, "BATCH", 2)
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode())
    read, plain = [], filedigests.hash_file

    def killed(path):
        read.append(Path(path).name)
        if read == ["a", "b", "c"]:
            raise KeyboardInterrupt
        return plain(path)

    monkeypatch.setattr(filedigests, "hash_file", killed)
    with pytest.raises(KeyboardInterrupt):
        FileSource(tmp_path, list("abc")).digests  # noqa: B018
    assert len(FileSource(tmp_path, list("abc")).digests) == 3
    assert read == [*"abc", "c"]


def test_class_lists(tmp_path):
    from oodscope.data.images.labels import read_class_names

    path = tmp_path / "c.txt"
    path.write_bytes(b"\xef\xbb\xbftench\r\ngreat white shark\r\n")
    assert read_class_names(path) == ["tench", "great white shark"]
    for content, message in (
        (b"a\n\nb\n", "line 2: empty"),
        (b"a\nb\na\n", "line 3: 'a' stands in line 1 already"),
        (b"\xff", "cannot read the class names"),
    ):
        path.write_bytes(content)
        with pytest.raises(OodscopeError, match=message):
            read_class_names(path)
    with pytest.raises(OodscopeError, match="No such file"):
        read_class_names(tmp_path / "gone.txt")


def test_what_is_no_image_is_called_by_its_path(tmp_path):
    """Pillow names what it was given, which is not the file any more but its bytes."""
    (tmp_path / "text.png").write_bytes(b"not an image")
    with pytest.raises(UnreadableImageError) as caught:
        decode(tmp_path / "text.png", lambda: "the file")
    assert "unreadable image the file" in str(caught.value)
    assert str(tmp_path / "text.png") in str(caught.value)
    assert "object at" not in str(caught.value)
