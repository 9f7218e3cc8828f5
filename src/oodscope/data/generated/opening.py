"""Open a generated set; its files must be those that its recipe names, to the byte."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from oodscope.base.config import StrictModel
from oodscope.base.errors import DataError
from oodscope.data.generated.record import FOLDER, RECIPE, read_generated
from oodscope.data.generated.writing import digest_of
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.sources.files import FileSource
from oodscope.execution.progress import SILENT, Progress


class GeneratedSource(FileSource):
    """Image files whose digests were compared with a recipe when they were opened."""

    def __init__(self, root: Path, paths: Sequence[str], known: Sequence[str]) -> None:
        super().__init__(root, paths)
        self.known = list(known)

    def keeping(self, rows: Sequence[int]) -> "GeneratedSource":
        return GeneratedSource(self.root, [self.paths[row] for row in rows], [self.known[row] for row in rows])

    def _digest_all(self) -> list[bytes]:
        return [bytes.fromhex(each) for each in self.known]


def is_generated(folder: Path | str) -> bool:
    """Whether a folder holds a generated set, sound or not."""
    return (Path(folder) / RECIPE).is_file() and (Path(folder) / FOLDER).is_dir()


def open_generated(folder: Path | str, name: str | None = None) -> ImageSet:
    """The images of a generated set, in order; a missing, changed or additional file stops it, by name.

    Every file is read and compared with the recipe, because images that are not those of the recipe would be judged
    under its name.

    Parameters
    ----------
    folder : that ``oodscope generate`` or ``write_generated`` wrote.
    name : of the set; by default that of the folder.
    """
    folder = Path(folder)
    record = read_generated(folder)
    present = {path.name for path in (folder / FOLDER).iterdir()} if (folder / FOLDER).is_dir() else set()
    for each in record.files:
        path = folder / FOLDER / each.file
        if each.file not in present:
            raise DataError(f"{path}: missing, but {RECIPE} names it; restore it, or generate the set again")
        if digest_of(path.read_bytes()) != each.digest:
            raise DataError(f"{path}: not the image that {RECIPE} names; restore it, or generate the set again")
    if foreign := sorted(present - {each.file for each in record.files}):
        raise DataError(f"{folder / FOLDER / foreign[0]}: not in {RECIPE}; take it away ({len(foreign)} such files)")
    source = GeneratedSource(folder / FOLDER, [each.file for each in record.files], [f.digest for f in record.files])
    labels = [each.label for each in record.files]
    unlabelled = all(label == UNLABELLED for label in labels)
    return ImageSet(name or folder.resolve().name, source, None if unlabelled else labels, record.class_names)


class GeneratedSpec(StrictModel):
    """A generated set in a benchmark's YAML: the folder that ``oodscope generate`` wrote."""

    source: Literal["generated"]
    path: str

    def open(self, name: str, root: Path, progress: Progress = SILENT) -> ImageSet:
        return open_generated(root / self.path, name)
