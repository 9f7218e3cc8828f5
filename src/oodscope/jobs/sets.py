"""OwnSets: a benchmark given as places instead of a name."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from oodscope.base.config import StrictModel
from oodscope.base.errors import UsageError
from oodscope.data.images.sourcespec import SOURCES
from oodscope.data.packaged import BENCHMARKS
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import Progress

if TYPE_CHECKING:
    from oodscope.data.benchmark import Benchmark

Places = list[str] | dict[str, str]


def moved(place: Any, folder: Path) -> Any:
    """A place, a list or a mapping of them, with paths relative to ``folder``."""
    if isinstance(place, dict):
        return {name: moved(each, folder) for name, each in place.items()}
    if isinstance(place, list):
        return [moved(each, folder) for each in place]
    source, colon, _ = place.partition(":")
    named = colon and source in ("hf", "torchvision", *SOURCES.others())
    return place if named or (set_of_benchmark(place) or ("",))[0] in BENCHMARKS else str(folder / place)


def check_places(place: str | Places) -> None:
    """Refuse a place where no images can be; nothing is opened."""
    # locating knows every kind of source, some of which need torch
    from oodscope.data.images.locating import locate

    for each in [place] if isinstance(place, str) else place.values() if isinstance(place, dict) else place:
        if set_of_benchmark(each) is None:
            locate(each)


def set_of_benchmark(text: str) -> tuple[str, str] | None:
    """Benchmark and set of ``BENCHMARK:SET``; a benchmark is a name of ``oodscope list benchmarks`` or a YAML file."""
    benchmark, colon, name = text.rpartition(":")
    if colon and (benchmark in BENCHMARKS or Path(benchmark).suffix in (".yaml", ".yml")):
        return benchmark, name
    return None


class PlacedSets(StrictModel):
    """Places by role: paths, ``hf:NAME[:SPLIT]`` or ``torchvision:CLASS[:SPLIT]``."""

    transform: Preprocess | None = None

    def places(self) -> dict[str, str | Places]:
        """What is given, by role."""
        given = {role: getattr(self, role) for role in type(self).model_fields if role != "transform"}
        return {role: place for role, place in given.items() if place}

    def found_from(self, folder: Path) -> Self:
        """The same with paths relative to ``folder``."""
        return self.model_copy(update={role: moved(place, folder) for role, place in self.places().items()})

    def check(self) -> None:
        """Refuse a place where no images can be, before any is opened."""
        for place in self.places().values():
            check_places(place)


class OwnSets(PlacedSets):
    """Where the sets of an evaluation lie; ``near``, ``far`` and ``csid`` hold several, as a list or by name."""

    id_test: str
    id_train: str | None = None
    id_val: str | None = None
    near: Places = []
    far: Places = []
    csid: Places = []
    ood_val: str | None = None

    def open(self, *, skip_unreadable: bool, progress: Progress) -> "Benchmark":
        """The benchmark itself."""
        from oodscope.data.own import own_benchmark

        places: dict[str, Any] = self.places()
        return own_benchmark(**places, transform=self.transform, skip_unreadable=skip_unreadable, progress=progress)


class CalibrationSets(PlacedSets):
    """Where a detector to deploy is fitted (``id_train``) and its threshold chosen (``id_cal``)."""

    id_cal: str
    id_train: str | None = None


def named_places(option: str, given: list[str]) -> Places:
    """Places of a repeated option; ``NAME=PLACE`` gives a set its name, and then all of that option need one."""
    pairs = [_split(each) for each in given]
    named = {name: place for name, place in pairs if name}
    if not named:
        return [place for _, place in pairs]
    if len(named) < len(pairs):
        raise UsageError(f"{option}: give each of its sets a name of its own (NAME=PLACE), or none")
    return named


def _split(text: str) -> tuple[str, str]:
    """``NAME=PLACE`` in its parts; a path that exists as it stands is a path, whatever signs it holds."""
    name, sign, place = text.partition("=")
    plain = not sign or not name or "/" in name or Path(text).exists()
    return ("", text) if plain else (name, place)
