"""How a split of a public dataset lies on disk: which files it is made of, and how they become an ImageSet."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from oodscope.base.config import StrictModel
from oodscope.base.errors import DataError
from oodscope.data.images.base import ImageSource
from oodscope.data.images.files import FileSource
from oodscope.data.images.folders import images_under, open_folder, open_list
from oodscope.data.images.reframed import PresizedSource
from oodscope.data.imageset import ImageSet
from oodscope.data.packaged import class_list, class_words


class Layout(StrictModel):
    """What all layouts share.

    Parameters
    ----------
    count : how many images the split holds; ``None`` where nobody published it.
    files : files other than images that it is made of, with their MD5 where the publisher, or torchvision,
        gives one.
    """

    count: int | None = Field(default=None, gt=0)
    files: dict[str, str | None] = {}

    @property
    def named(self) -> dict[str, str | None]:
        """The files that are known by name before anything is there, with their MD5 where it is known."""
        return self.files

    def images(self, root: Path) -> list[str]:
        """The image files that should be there, relative to ``root``; none for binary formats."""
        return []

    def open(self, name: str, root: Path) -> ImageSet:
        """The split as an image set."""
        raise NotImplementedError


class FolderLayout(Layout):
    """Images under a folder; its subfolders are the classes.

    Parameters
    ----------
    classes : a packaged class list that the folder names belong to. Classes are then called by their words.
    """

    layout: Literal["folder"]
    path: str
    classes: str | None = None

    def images(self, root: Path) -> list[str]:
        folder = root / self.path
        return sorted(f"{self.path}/{file}" for file in images_under(folder)) if folder.is_dir() else []

    def open(self, name: str, root: Path) -> ImageSet:
        opened = open_folder(name, root / self.path)
        if self.classes is None:
            return opened
        position = {folder: number for number, folder in enumerate(class_list(self.classes))}
        unknown = [folder for folder in opened.class_names if folder not in position]
        if unknown:
            raise DataError(
                f"set {name!r}: {root / self.path} has the folder {unknown[0]!r}, no class of {self.classes}"
            )
        words = class_words(self.classes)
        return ImageSet(name, opened.source, opened.labels, [words[position[folder]] for folder in opened.class_names])


class ListLayout(Layout):
    """Images named by a list of ``path label`` lines, relative to ``folder``, as OpenOOD publishes them.

    Parameters
    ----------
    classes : the packaged class list whose positions the labels are, for their words; or how many classes the labels
        count, which are then called by their numbers; without it, as many as occur.
    only : keep the lines with this label; it then numbers a part of the list and is not a class (CelebA's
        ``list_eval_partition.txt``).
    presized : the images already have the size that networks want.
    """

    layout: Literal["list"]
    path: str
    folder: str
    classes: str | Annotated[int, Field(gt=0)] | None = None
    only: int | None = None
    presized: bool = False

    @property
    def named(self) -> dict[str, str | None]:
        return {self.path: None, **self.files}

    def images(self, root: Path) -> list[str]:
        if not (root / self.path).is_file():
            return []
        opened = self._read("", root)
        return [f"{self.folder}/{name}" for name in opened.sample_ids()]

    def open(self, name: str, root: Path) -> ImageSet:
        opened = self._read(name, root)
        source: ImageSource = PresizedSource(opened.source) if self.presized else opened.source
        labels = None if self.only is not None else opened.labels
        return ImageSet(name, source, labels, self._class_names(), rows=opened.rows)

    def _class_names(self) -> tuple[str, ...]:
        if isinstance(self.classes, str):
            return class_words(self.classes)
        return tuple(str(number) for number in range(self.classes or 0))

    def _read(self, name: str, root: Path) -> ImageSet:
        opened = open_list(name, root / self.path, root / self.folder)
        return opened if self.only is None else opened.take((opened.labels == self.only).nonzero()[0])


class TinyImageNetValLayout(Layout):
    """Tiny ImageNet's validation images, in the order of their numbers; classes are WordNet ids."""

    layout: Literal["tiny_imagenet_val"]
    path: str

    @property
    def named(self) -> dict[str, str | None]:
        return {f"{self.path}/val_annotations.txt": None, **self.files}

    def images(self, root: Path) -> list[str]:
        if not (root / self.path / "val_annotations.txt").is_file():
            return []
        return [f"{self.path}/images/{file}" for file, _ in self._annotations(root)]

    def open(self, name: str, root: Path) -> ImageSet:
        pairs = self._annotations(root)
        classes = sorted({wnid for _, wnid in pairs})
        code = {wnid: number for number, wnid in enumerate(classes)}
        files = FileSource(root / self.path / "images", [file for file, _ in pairs])
        return ImageSet(name, files, [code[wnid] for _, wnid in pairs], classes)

    def _annotations(self, root: Path) -> list[tuple[str, str]]:
        path = root / self.path / "val_annotations.txt"
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            pairs = [(line.split("\t")[0], line.split("\t")[1]) for line in lines if line.strip()]
            pairs.sort(key=lambda pair: int(pair[0].removeprefix("val_").partition(".")[0]))
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, IndexError) as error:
            raise DataError(f"{path}: expected lines 'val_N.JPEG<tab>class<tab>...': {error}") from error
        if not pairs:
            raise DataError(f"{path}: names no image")
        return pairs


class TorchvisionLayout(Layout):
    """A binary format that torchvision reads.

    CIFAR's files are pickles. torchvision unpickles them only after their MD5 has matched the one in its own source,
    which is why that is acceptable here and nowhere else.

    Parameters
    ----------
    dataset : of ``torchvision.datasets``.
    path : the folder it is given as its root.
    """

    layout: Literal["torchvision"]
    dataset: str
    path: str = "."
    options: dict[str, str | bool | int] = {}

    def open(self, name: str, root: Path) -> ImageSet:
        from torchvision import datasets

        try:
            opened: Any = getattr(datasets, self.dataset)(str(root / self.path), **self.options)
        except Exception as error:  # damaged files make the readers fail in ways of their own
            reason = " ".join(str(error).split())
            raise DataError(f"set {name!r}: torchvision cannot read {self.dataset} in {root}: {reason}") from error
        return ImageSet.from_dataset(name, opened)


AnyLayout = Annotated[
    FolderLayout | ListLayout | TinyImageNetValLayout | TorchvisionLayout, Field(discriminator="layout")
]
