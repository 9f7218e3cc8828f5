"""One set of images, named on the command line."""

from pathlib import Path

from oodscope.base.catalog import catalog
from oodscope.base.errors import UnknownNameError
from oodscope.data.images.locating import locate, stem_of
from oodscope.data.images.readability import usable
from oodscope.data.imageset import ImageSet
from oodscope.data.loading import load_benchmark
from oodscope.execution.progress import Progress


def open_one(text: str, root: Path | None, progress: Progress) -> ImageSet:
    """The set that ``text`` names: a place of one's own, or ``BENCHMARK:SET``.

    Parameters
    ----------
    text : what ``locate`` reads, or a benchmark (a name of ``oodscope list benchmarks``, or a YAML file), a colon, and
        the name of one of its sets.
    root : folder of public datasets.
    """
    benchmark, colon, name = text.rpartition(":")
    if colon and (benchmark in catalog("benchmarks") or Path(benchmark).suffix in (".yaml", ".yml")):
        sets = {images.name: images for _, images in load_benchmark(benchmark, root=root, progress=progress).members()}
        if name not in sets:
            raise UnknownNameError(f"set of {benchmark}", name, sets, f"It has: {', '.join(sets)}")
        return sets[name]
    return usable(locate(text).open(stem_of(text), Path(), progress), skip_unreadable=False)
