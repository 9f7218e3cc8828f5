"""Damaged and forged files: images, arrays, lists, weights, artefacts."""

import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

from tests.hostile.case import Case
from tests.hostile.declared import EVALUATE
from tests.hostile.good import good


def _png(width: int, height: int) -> bytes:
    """The head of a picture that claims this size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def _encoded(kind: str) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (8, 8), (9, 99, 199)).save(stream, kind)
    return stream.getvalue()


def _line(length: int) -> bytes:
    """A whole picture of a few kilobytes that is gigabytes once its short side is resized."""
    stream = io.BytesIO()
    Image.new("L", (length, 1)).save(stream, "PNG")
    return stream.getvalue()


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n(touch ran) (w) file\nshowpage\n%%EOF\n"
PICTURES: dict[str, bytes] = {
    "EPS": EPS,
    "ICO": _encoded("ICO"),
    "PCX": _encoded("PCX"),
    "TGA": _encoded("TGA"),
    "SGI": _encoded("SGI"),
    "DIB": _encoded("DIB"),
    "a PDF": b"%PDF-1.4\n%%EOF\n",
    "SVG": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "text": b"hello",
    "nothing": b"",
    "zeros": bytes(1000),
    "a cut PNG": _encoded("PNG")[:40],
    "a cut JPEG": _encoded("JPEG")[:200],
    "a cut TIFF": _encoded("TIFF")[:30],
    "a cut GIF": _encoded("GIF")[:10],
    "a bomb": _png(60_000, 60_000),
    "a wide bomb": _png(2**31 - 1, 1),
    "no pixels": _png(0, 0),
    "a line of pixels": _line(4_000_000),
    "a false checksum": _encoded("PNG").replace(b"IDAT", b"IDAU"),
}


def picture_cases() -> Iterator[Case]:
    argv = tuple("pictures" if each == "GOOD/test.npz" else each for each in EVALUATE)
    for name, content in {**PICTURES, "a device": _device}.items():
        files = {f"pictures/{cls}/1.png": _encoded("PNG") for cls in "abcd"} | {"pictures/a/0.png": content}
        yield Case(f"image: {name}", argv, ("pictures/a/0.png",), files)


def _npz(**arrays: object) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _device(path: Path) -> None:
    """A file that never ends."""
    path.symlink_to("/dev/zero")


def _claims(shape: str) -> bytes:
    stream = io.BytesIO()
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (118 - len(head)) + b"\n"
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("images.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
    return stream.getvalue()


PIXELS = np.zeros((8, 8, 8, 3), np.uint8)
ONE_ARRAY = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }"
ARRAYS: dict[str, bytes] = {
    "nothing": b"",
    "text": b"not an archive",
    "an empty archive": _npz(),
    "no images": _npz(labels=np.arange(3)),
    "pickled": _npz(images=np.array([{"a": 1}], dtype=object)),
    "floats": _npz(images=PIXELS.astype(float)),
    "one axis": _npz(images=np.zeros(5, np.uint8)),
    "five axes": _npz(images=np.zeros((1, 1, 1, 1, 3), np.uint8)),
    "seven channels": _npz(images=np.zeros((4, 8, 8, 7), np.uint8)),
    "no rows": _npz(images=PIXELS[:0]),
    "labels too few": _npz(images=PIXELS, labels=np.arange(3)),
    "labels of text": _npz(images=PIXELS, labels=np.array(list("abcdefgh"))),
    "labels of floats": _npz(images=PIXELS, labels=np.full(8, 0.5)),
    "labels beyond the names": _npz(images=PIXELS, labels=np.full(8, 99), class_names=["a"]),
    "labels below -1": _npz(images=PIXELS, labels=np.full(8, -7)),
    "30 TB": _claims("(10000000, 1000, 1000, 3)"),
    "2^70 rows": _claims(f"({2**70}, 8, 8, 3)"),
    "-1 rows": _claims("(-1, 8, 8, 3)"),
    "cut": _npz(images=PIXELS)[:200],
    "a single array": b"\x93NUMPY\x01\x00v\x00" + ONE_ARRAY.ljust(117) + b"\n\0",
}


ARRAYS_TELL: dict[str, tuple[str, ...]] = {
    "-1 rows": ("bad.npz", "negative"),
    "2^70 rows": ("bad.npz",),
    "30 TB": ("bad.npz", "memory"),
    "a single array": ("bad.npz", "one array"),
    "an empty archive": ("bad.npz", "'images'"),
    "cut": ("bad.npz", "zip"),
    "five axes": ("[1, 1, 1, 1, 3]",),
    "floats": ("id_test", "float64"),
    "labels below -1": ("label -7",),
    "labels beyond the names": ("label 99",),
    "labels of floats": ("labels", "float64"),
    "labels of text": ("labels", "integers"),
    "labels too few": ("8 labels",),
    "no images": ("'images'", "labels"),
    "no rows": ("id_test", "empty"),
    "nothing": ("bad.npz",),
    "one axis": ("id_test", "[5]"),
    "pickled": ("bad.npz", "pickled"),
    "seven channels": ("[4, 8, 8, 7]",),
    "text": ("bad.npz", "no npz file"),
}


def array_cases() -> Iterator[Case]:
    argv = tuple("bad.npz" if each == "GOOD/test.npz" else each for each in EVALUATE)
    for name, content in ARRAYS.items():
        yield Case(f"arrays: {name}", argv, ARRAYS_TELL[name], {"bad.npz": content})
    yield Case("arrays: a pipe", argv, ("bad.npz", "not a file"), {"bad.npz": os.mkfifo})
    yield Case("arrays: class names of a device", (*EVALUATE, "--classes", "names"), ("names",), {"names": _device})
    argv = ("evaluate", "--activations", "id_test=a.npz", "--detectors", "msp", "--output", "out")
    columns = {"logits": np.zeros((4, 0)), "labels": np.arange(4)}
    yield Case("arrays: logits without columns", argv, ("id_test", "no columns"), {"a.npz": _npz(**columns)})


LISTS: dict[str, tuple[str, str | bytes, tuple[str, ...]]] = {
    "no label": ("list.txt", "a.png\n", ("line 1",)),
    "label a word": ("list.txt", "a.png cat\n", ("line 1",)),
    "twice": ("list.txt", "a.png 0\na.png 1\n", ("a.png",)),
    "nothing": ("list.txt", "", ("id_test", "empty")),
    "binary": ("list.txt", bytes(range(200, 256)), ("list.txt",)),
    "file not there": ("list.txt", "missing.png 0\n", ("missing.png",)),
    "label of many digits": ("list.txt", "a.png " + "9" * 40 + "\n", ("line 1", "number")),
    "table without a header": ("list.csv", "a.png,0\n", ("list.csv", "'path'")),
    "table with a hole": ("list.csv", "path,label\na.png,\n", ("list.csv, line 2", "label")),
    "table of binary": ("list.csv", bytes(range(200, 256)), ("list.csv",)),
    "empty table": ("list.csv", "", ("list.csv",)),
    "no archive": ("set.tar", b"not a tar", ("set.tar",)),
    "empty archive": ("set.tar", b"\0" * 10240, ("set.tar",)),
}


def list_cases() -> Iterator[Case]:
    for name, (file, content, tells) in LISTS.items():
        argv = tuple(file if each == "GOOD/test.npz" else each for each in EVALUATE)
        yield Case(f"list: {name}", argv, tells, {file: content})
    argv = tuple("set.tar" if each == "GOOD/test.npz" else each for each in EVALUATE)
    yield Case("list: archive with a link", argv, ("set.tar",), {"set.tar": _tar_with_link})
    yield Case("list: archive of EPS", argv, ("id_test", "label"), {"set.tar": _tar_of_eps})


def _tar_with_link(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("0.png")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member)


def _tar_of_eps(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("0.png")
        member.size = len(EPS)
        archive.addfile(member, io.BytesIO(EPS))


class _Evil:
    def __reduce__(self):
        return (exec, ("open('ran', 'w')",))


def _torch(content: object):
    return lambda path: torch.save(content, path)


WEIGHTS: dict[str, tuple[str, object, tuple[str, ...]]] = {
    "garbage": ("net.pt", bytes(range(256)) * 10, ("net.pt",)),
    "nothing": ("net.pt", b"", ("net.pt",)),
    "text": ("net.pt", "hello", ("net.pt",)),
    "a pickle": ("net.pt", pickle.dumps(_Evil()), ("net.pt",)),
    "a pickle in torch's format": ("net.pt", _torch({"a": _Evil()}), ("net.pt",)),
    "an archive of nothing": ("net.pt", b"PK\x05\x06" + bytes(18), ("net.pt",)),
    "a number": ("net.pt", _torch(5), ("net.pt",)),
    "a list": ("net.pt", _torch([torch.zeros(2)]), ("net.pt",)),
    "another network": ("net.pt", _torch({"x.weight": torch.zeros(3, 3)}), ("net.pt",)),
    "garbage safetensors": ("net.safetensors", b"\xff" * 64, ("net.safetensors",)),
    "a head of 2^60 bytes": ("net.safetensors", struct.pack("<Q", 2**60) + b"{}", ("net.safetensors",)),
    "cut safetensors": ("net.safetensors", struct.pack("<Q", 100) + b'{"a":', ("net.safetensors",)),
    "another network in safetensors": (
        "net.safetensors",
        lambda path: save_file({"x.weight": torch.zeros(3, 3)}, path),
        ("net.safetensors",),
    ),
    "a folder": ("net.pt/inside", "x", ("net.pt",)),
    "another ending": ("net.h5", b"\x89HDF", ("net.h5",)),
}


def weight_cases() -> Iterator[Case]:
    for name, (file, content, tells) in WEIGHTS.items():
        argv = (*EVALUATE, "--model", "small_cnn", "--weights", file.split("/")[0])
        yield Case(f"weights: {name}", argv, tells, {file: content})


def _artefact(change):
    """A maker of an artefact whose record was changed, its checksum made to fit."""

    def make(path: Path) -> None:
        from oodscope.deploy.artefact import _FILE

        record, tensors = _FILE.read(good() / "good.oodscope")
        change(record, tensors)
        _FILE.write(path, json.dumps(record), tensors)

    return make


def _bytes_of_artefact(change):
    def make(path: Path) -> None:
        content = bytearray((good() / "good.oodscope").read_bytes())
        path.write_bytes(bytes(change(content)))

    return make


def _without(name):
    return lambda record, tensors: tensors.pop(name)


def _of(part, **values):
    def change(record, tensors):
        record[part].update(values)

    return change


def _origin(**values):
    full = {"architecture": "small_cnn", "pretrained": False} | values

    def change(record, tensors):
        record["classifier"]["origin"] = full
        for name in [name for name in tensors if full["pretrained"] and name.startswith("weights.")]:
            tensors.pop(name)

    return change


ARTEFACTS: dict[str, tuple[object, tuple[str, ...]]] = {
    "nothing": (b"", ("bad.oodscope", "not a readable")),
    "text": ("hello", ("bad.oodscope", "not a readable")),
    "cut": (_bytes_of_artefact(lambda content: content[:-100]), ("bad.oodscope", "cut off")),
    "a changed byte": (
        _bytes_of_artefact(lambda content: content[:-3] + b"\x7f" + content[-2:]),
        ("bad.oodscope", "checksum"),
    ),
    "plain safetensors": (lambda path: save_file({"a": torch.zeros(2)}, path), ("bad.oodscope", "safetensors")),
    "no proof": (_artefact(_without("proof.logits")), ("proof.logits",)),
    "no calibration": (_artefact(_without("calibration.scores")), ("calibration.scores",)),
    "a key too many": (_artefact(lambda record, tensors: record.update(evil=1)), ("evil",)),
    "a record of a list": (_artefact(lambda record, tensors: record.update(classifier=[])), ("classifier",)),
    "a newer format": (_artefact(lambda record, tensors: record.update(format=99)), ("99",)),
    "an unknown detector": (_artefact(_of("detector", detector="nosuch")), ("nosuch",)),
    "code as detector": (_artefact(_of("detector", detector="python:os:system")), ("python:os:system",)),
    "a parameter too many": (_artefact(_of("detector", params={"evil": 1})), ("evil",)),
    "a method replaced": (_artefact(_of("detector", values={"_score": 1})), ("_score",)),
    "a dunder": (_artefact(_of("detector", values={"__class__": "x"})), ("__class__",)),
    "another version": (_artefact(_of("detector", version=99)), ("99",)),
    "a hub network": (_artefact(_origin(architecture="hf:evil/net", pretrained=True)), ("--allow-download",)),
    "a hub network of timm": (
        _artefact(_origin(architecture="timm:hf-hub:evil/net", pretrained=True)),
        ("evil/net",),
    ),
    "a network that is fetched": (
        _artefact(_origin(architecture="torchvision:alexnet", pretrained=True)),
        ("torchvision:alexnet",),
    ),
    "an unknown network": (_artefact(_origin(architecture="nosuchnet")), ("nosuchnet",)),
    "code as network": (_artefact(_origin(architecture="python:os:getcwd")), ("python:os:getcwd",)),
    "a size of 10^9": (
        _artefact(lambda record, tensors: record["classifier"]["transform"].update(size=10**9)),
        ("size",),
    ),
    "an escape sequence in its name": (
        _artefact(lambda record, tensors: record["classifier"].update(name="\x1b]0;evil\x07\x1b[2J", origin=None)),
        ("--model",),
    ),
    "nothing of weights": (
        _artefact(lambda record, tensors: [tensors.pop(key) for key in list(tensors) if key.startswith("weights.")]),
        ("--model",),
    ),
}
NEEDS_NETWORK = {"no proof", "no calibration", "an unknown detector", "code as detector", "a parameter too many"}
NEEDS_NETWORK |= {"a method replaced", "a dunder", "another version", "a size of 10^9"}

LACKING = {"an escape sequence in its name", "nothing of weights"}
"""Whole files that need an option which the command lacks."""


def artefact_cases() -> Iterator[Case]:
    for name, (content, tells) in ARTEFACTS.items():
        argv = ("predict", "bad.oodscope", "GOOD/pictures", "--device", "cpu")
        if name in NEEDS_NETWORK:
            argv += ("--model", "python:goodnet:build")
        yield Case(f"artefact: {name}", argv, tells, {"bad.oodscope": content}, 2 if name in LACKING else 1)
