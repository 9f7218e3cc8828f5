"""Every packaged dataset in miniature: few images, true layouts and binary formats, made from the cards themselves.

The cards and manifests are copied with smaller counts, the checksums of the small files, and an eighth of 224 pixels;
nothing else changes, so what is tested is the packaged YAML.
"""

import gzip
import hashlib
import io
import pickle
import shutil
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import yaml
from PIL import Image
from scipy.io import savemat

from oodscope.data import packaged

TRUE_HOME = packaged.HOME
COUNTS = {"CIFAR10": 40, "CIFAR100": 200, "SVHN": 30, "train": 40, "test": 24, "list": 24, "folder": 12, "tin": 40}
MASKS = {"cifar10_val": (40, 10), "cifar100_val": (200, 20), "cifar10_tin_val": (40, 8), "cifar100_tin_val": (40, 7)}


class Miniature:
    """A home of shrunken cards and manifests, and a root with the files they describe."""

    def __init__(self, folder, patch):
        self.home, self.root = folder / "home", folder / "root"
        self.rng = np.random.default_rng(0)
        self._archives = {}
        self.cards = {path.stem: yaml.safe_load(path.read_text()) for path in (TRUE_HOME / "datasets").glob("*.yaml")}
        for card in self.cards.values():
            for name, split in card.get("splits", {}).items():
                getattr(self, f"_write_{split['layout']}")(card, name, split)
        for card in self.cards.values():
            for split in card.get("splits", {}).values():
                sums = {
                    name: md5(self.root / name) if known else None for name, known in split.get("files", {}).items()
                }
                split.update({"files": sums} if sums else {})
        self.masks = self._write_lists()
        self._write_yaml()
        patch.setattr(packaged, "HOME", self.home)
        self._patch_torchvision(patch)

    def picture(self, side=20):
        return self.rng.integers(0, 256, (side, side, 3), dtype=np.uint8)

    def save(self, path, side=20):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        # the name may end in JPEG: written as a JPEG, so that truncation shows
        Image.fromarray(self.picture(side)).save(target, format="PNG" if target.suffix == ".png" else "JPEG")

    def _write_folder(self, card, name, split):
        wnids = (TRUE_HOME / "lists" / "imagenet_1k.txt").read_text().split()
        known = (TRUE_HOME / "lists" / "imagenet_200.txt").read_text().split()[:2]
        names = (
            [*known, *[wnid for wnid in wnids if wnid not in known][:2]] if "net" in card["name"] else ["dots", "grid"]
        )
        nested = "images/" if card["name"] == "tiny_imagenet" else ""
        for number in range(COUNTS["folder"]):
            cls = names[number % len(names)]
            self.save(f"{split['path']}/{cls}/{nested}{cls}_{number}.JPEG")
        if "count" in split:
            split["count"] = COUNTS["folder"]

    def _write_list(self, card, name, split):
        lines, only = [], split.get("only")
        side = 28 if split.get("presized") else 20
        for number in range(COUNTS["list"] * (1 if only is None else 3)):
            classes = split.get("classes")
            most = classes if isinstance(classes, int) else 12
            label = number % most if classes is not None else -1 if only is None else number % 3
            file = f"{card['name']}/listed_{name}/{number} x.jpg" if only is None else f"{number:06d}.jpg"
            if not (self.root / split["folder"] / file).exists():
                self.save(f"{split['folder']}/{file}", side)
            lines.append(f"{file} {label}\n")
        target = self.root / split["path"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(lines))
        if "count" in split:
            split["count"] = COUNTS["list"]

    def _write_tiny_imagenet_val(self, card, name, split):
        lines = []
        for number in range(COUNTS["tin"]):
            self.save(f"{split['path']}/images/val_{number}.JPEG", 64)
            lines.append(f"val_{number}.JPEG\tn{number % 4:08d}\t0\t0\t63\t63\n")
        # as in the original, val_10 comes after val_9
        (self.root / split["path"] / "val_annotations.txt").write_text("".join(lines))
        split["count"] = COUNTS["tin"]

    def _write_torchvision(self, card, name, split):
        getattr(self, f"_write_{split['dataset'].lower()}", self._write_idx)(card, name, split)

    def _write_cifar10(self, card, name, split):
        classes = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
        folder = self.root / "cifar-10-batches-py"
        split["count"] = COUNTS["CIFAR10"]
        if folder.exists():
            return
        folder.mkdir(parents=True)
        write_pickle(folder / "batches.meta", {"label_names": classes})
        for batch in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
            count = COUNTS["CIFAR10"] // (1 if batch == "test_batch" else 5)
            labels = self.rng.permutation(np.arange(count) % 10).tolist()
            write_pickle(folder / batch, {"data": self._flat(count), "labels": labels})

    def _write_cifar100(self, card, name, split):
        folder = self.root / "cifar-100-python"
        split["count"] = COUNTS["CIFAR100"]
        if folder.exists():
            return
        folder.mkdir(parents=True)
        names = sorted(member for members in card["hierarchy"]["superclass"].values() for member in members)
        write_pickle(folder / "meta", {"fine_label_names": names})
        for part in ("train", "test"):
            labels = self.rng.permutation(np.arange(COUNTS["CIFAR100"]) % 100).tolist()
            write_pickle(folder / part, {"data": self._flat(COUNTS["CIFAR100"]), "fine_labels": labels})

    def _flat(self, count):
        return self.rng.integers(0, 256, (count, 3072), dtype=np.uint8)

    def _write_idx(self, card, name, split):
        count = COUNTS["train" if name.endswith("train") else "test"]
        part = {"train": "train-", "test": "t10k-"}.get(name, "emnist-")  # MNIST's parts list each other's files
        images, labels = sorted(file for file in split["files"] if Path(file).name.startswith(part))
        values = np.arange(count) % 10 + (1 if "letters" in name else 0)
        write_idx(self.root / images, self.rng.integers(0, 256, (count, 28, 28), dtype=np.uint8))
        write_idx(self.root / labels, values.astype(np.uint8))
        split["count"] = count

    def _write_svhn(self, card, name, split):
        (path,) = split["files"]
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        labels = (np.arange(COUNTS["SVHN"]) % 10 + 1).reshape(-1, 1)
        pixels = self.rng.integers(0, 256, (32, 32, 3, COUNTS["SVHN"]), dtype=np.uint8)
        savemat(self.root / path, {"X": pixels, "y": labels})
        split["count"] = COUNTS["SVHN"]

    def _write_lists(self):
        shutil.copytree(TRUE_HOME / "lists", self.home / "lists")
        masks = {}
        for name, (length, count) in MASKS.items():
            masks[name] = np.zeros(length, bool)
            masks[name][self.rng.choice(length, count, replace=False)] = True
        for dataset in ("cifar10", "cifar100"):
            free = np.flatnonzero(~masks[f"{dataset}_tin_val"])
            masks[f"{dataset}_tin_test"] = np.isin(np.arange(40), self.rng.choice(free, 20, replace=False))
        packed = {name: np.packbits(mask) for name, mask in masks.items()}
        np.savez_compressed(self.home / "lists" / "openood15.npz", **packed)
        return masks

    def _write_yaml(self):
        for kind in ("datasets", "benchmarks"):
            (self.home / kind).mkdir(parents=True)
        for name, card in self.cards.items():
            (self.home / "datasets" / f"{name}.yaml").write_text(yaml.safe_dump(card))
        for path in (TRUE_HOME / "benchmarks").glob("*.yaml"):
            manifest = yaml.safe_load(path.read_text())
            if manifest.get("transform", {}).get("size") == 224:
                manifest["transform"] |= {"size": 28, "resize": manifest["transform"].get("resize", 224) // 8}
            for spec in manifest["sets"].values():
                for each in [spec] if "source" in spec else spec.values():
                    self._shrink(each)
            (self.home / "benchmarks" / path.name).write_text(yaml.safe_dump(manifest))

    def _shrink(self, spec):
        if spec["source"] == "corrupted":
            spec["count"] = 15
        elif spec["source"] == "dataset" and "count" in spec:
            if (share := spec.get("random")) and round(share["share"] * self.total(spec)) == 0:
                share["share"] = 0.1  # a thousand of SVHN's 73,257 digits would be none of the miniature's
            spec["count"] = self.count(spec)

    def total(self, spec):
        splits = [spec["split"]] if isinstance(spec["split"], str) else spec["split"]
        return sum(self.cards[spec["dataset"]]["splits"][split]["count"] for split in splits)

    def count(self, spec):
        """How many images a set of the miniature must have, worked out from what was written."""
        total = self.total(spec)
        if rows := spec.get("rows"):
            return int(
                self.masks[rows].sum() if rows in self.masks else (~self.masks[rows.replace("test", "val")]).sum()
            )
        if drawn := spec.get("classes", {}).get("keep"):
            return total // 5 if drawn == "drawn" else total * 4 // 5
        if share := spec.get("random"):
            held_out = round(share["share"] * total)
            return held_out if share["keep"] == "held_out" else total - held_out
        return total

    def _patch_torchvision(self, patch):
        """torchvision refuses files whose MD5 is not that of the true ones: tell it those of the small ones."""
        from torchvision import datasets

        for cls, folder in ((datasets.CIFAR10, "cifar-10-batches-py"), (datasets.CIFAR100, "cifar-100-python")):
            for attribute in ("train_list", "test_list"):
                small = [[name, md5(self.root / folder / name)] for name, _ in getattr(cls, attribute)]
                patch.setattr(cls, attribute, small)
            patch.setattr(cls, "meta", {**cls.meta, "md5": md5(self.root / folder / cls.meta["filename"])})
        small = {
            name: [url, file, md5(self.root / "svhn" / file)]
            for name, (url, file, _) in datasets.SVHN.split_list.items()
            if name != "extra"
        }
        patch.setattr(datasets.SVHN, "split_list", small)

    def archives(self, names):
        """Everything that publishers would serve for some cards, made once."""
        if not self._archives:
            self._archives = {
                f"{name}/{fetch['url'].rpartition('/')[2]}": self.archive(name, fetch)
                for name in names
                for fetch in self.cards[name]["fetch"]
            }
        return self._archives

    def archive(self, card, fetch):
        """The bytes that a publisher would serve for one entry of a card."""
        name = fetch.get("file") or fetch["url"].rpartition("/")[2]
        files = self._content(card, fetch)
        if not name.endswith((".zip", ".tar", ".gz")):
            ((_, data),) = files.items()
            return data
        if name.endswith(".gz") and not name.endswith(".tar.gz"):
            return gzip.compress(dict(files)[name[:-3]])
        if card == "emnist":
            files = {f"{inner}.gz": gzip.compress(data) for inner, data in files.items()}
        strip = f"{fetch['strip']}/" if "strip" in fetch else ""
        return pack(name, {f"{strip}{inner}": data for inner, data in files.items()})

    def _content(self, card, fetch):
        from oodscope.data.public.cards import load_card
        from oodscope.data.public.state import list_files

        into = self.root / fetch.get("into", ".")
        splits = fetch.get("splits") or self.cards[card]["splits"]
        names = {name for split in splits for name in list_files(load_card(card), split, self.root).sizes}
        return {
            (self.root / name).relative_to(into).as_posix(): (self.root / name).read_bytes() for name in sorted(names)
        }


def pack(name, files):
    buffer = io.BytesIO()
    if name.endswith(".zip"):
        with zipfile.ZipFile(buffer, "w") as archive:
            for inner, data in files.items():
                archive.writestr(inner, data)
    else:
        with tarfile.open(fileobj=buffer, mode="w:gz" if name.endswith(".gz") else "w") as archive:
            for inner, data in files.items():
                entry = tarfile.TarInfo(inner)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def write_pickle(path, content):
    path.write_bytes(pickle.dumps(content))


def write_idx(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes())


def md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()
