"""OwnSets: a benchmark given as places instead of a name."""

from pathlib import Path
from typing import Any

from oodscope.base.config import StrictModel
from oodscope.base.errors import OodscopeError
from oodscope.data.benchmark import Benchmark
from oodscope.data.own import own_benchmark
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import Progress

Places = list[str] | dict[str, str]


class OwnSets(StrictModel):
    """Where the sets lie, by role: paths, ``hf:NAME[:SPLIT]`` or ``torchvision:CLASS[:SPLIT]``.

    ``near``, ``far`` and ``csid`` hold several, as a list or by name.
    """

    id_test: str
    id_train: str | None = None
    id_val: str | None = None
    near: Places = []
    far: Places = []
    csid: Places = []
    ood_val: str | None = None
    transform: Preprocess | None = None

    def found_from(self, folder: Path) -> "OwnSets":
        """The same with paths relative to ``folder``."""

        def moved(place: Any) -> Any:
            if isinstance(place, dict):
                return {name: moved(each) for name, each in place.items()}
            if isinstance(place, list):
                return [moved(each) for each in place]
            named = not isinstance(place, str) or place.startswith(("hf:", "torchvision:"))
            return place if named else str(folder / place)

        return self.model_copy(update={role: moved(getattr(self, role)) for role in type(self).model_fields})

    def open(self, *, skip_unreadable: bool, progress: Progress) -> Benchmark:
        """The benchmark itself."""
        places = {role: getattr(self, role) for role in type(self).model_fields}
        return own_benchmark(**places, skip_unreadable=skip_unreadable, progress=progress)


def named_places(option: str, given: list[str]) -> Places:
    """Places of a repeated option; ``NAME=PLACE`` gives a set its name, and then all of that option need one."""
    pairs = [_split(each) for each in given]
    named = {name: place for name, place in pairs if name}
    if not named:
        return [place for _, place in pairs]
    if len(named) < len(pairs):
        raise OodscopeError(f"{option}: give each of its sets a name of its own (NAME=PLACE), or none")
    return named


def _split(text: str) -> tuple[str, str]:
    """``NAME=PLACE`` in its parts; a path that exists as it stands is a path, whatever signs it holds."""
    name, sign, place = text.partition("=")
    plain = not sign or not name or "/" in name or Path(text).exists()
    return ("", text) if plain else (name, place)
