"""DatasetRoot: the datasets under one root, opened once each and only if they can be trusted."""

import os
from pathlib import Path

from oodscope.base.errors import DataError
from oodscope.base.files import cache_root
from oodscope.data.imageset import ImageSet
from oodscope.data.public.cards import load_card
from oodscope.data.public.state import State, state_of


def data_root(explicit: Path | str | None = None) -> Path:
    """The folder of datasets: the one given, else ``OODSCOPE_ROOT``, else ``data`` in the cache."""
    if explicit is not None:
        return Path(explicit).expanduser()
    named = os.environ.get("OODSCOPE_ROOT")
    return Path(named).expanduser() if named else cache_root() / "data"


class DatasetRoot:
    """Opens splits of public datasets.

    A split opened twice is one object: parts of it then share one source, so that each image is extracted once.

    Parameters
    ----------
    root : the folder they lie under.
    lenient : open what is there without asking whether it was ever verified, and whatever its number.
    benchmark : for whom; advice then names it, so that nothing is fetched that it does not need.
    """

    def __init__(self, root: Path, *, lenient: bool = False, benchmark: str | None = None) -> None:
        self.root = root
        self.lenient = lenient
        self.benchmark = benchmark
        self._opened: dict[tuple[str, str], ImageSet] = {}
        self._states: dict[tuple[str, str], State] = {}

    def state(self, dataset: str, split: str) -> State:
        """The state of one split, looked at once: ImageNet has a million files to look at."""
        known = (dataset, split)
        if known not in self._states:
            self._states[known] = state_of(load_card(dataset), split, self.root)
        return self._states[known]

    def open(self, dataset: str, split: str) -> ImageSet:
        """One split, with the levels of its hierarchy; one line that says what to do if it is not ready."""
        known = (dataset, split)
        if known not in self._opened:
            self._require(dataset, split)
            self._opened[known] = self._open(dataset, split)
        return self._opened[known]

    def _require(self, dataset: str, split: str) -> None:
        state = self.state(dataset, split)
        name = self.benchmark or dataset
        if state in (State.MISSING, State.PARTIAL) and not (self.lenient and state is State.PARTIAL):
            raise DataError(
                f"dataset {dataset!r}, split {split!r}: {state} under {self.root}. "
                f"Get it: oodscope data prepare {name} --root {self.root}"
            )
        if state is State.UNVERIFIED and not self.lenient:
            raise DataError(
                f"dataset {dataset!r}, split {split!r}: not verified since it last changed under {self.root}. "
                f"Look it over once: oodscope data check {name} --root {self.root}"
            )

    def _open(self, dataset: str, split: str) -> ImageSet:
        card = load_card(dataset)
        images = card.split(split).open(f"{dataset}/{split}", self.root)
        expected = card.split(split).count
        if expected is not None and len(images) != expected and not self.lenient:
            raise DataError(f"dataset {dataset!r}, split {split!r}: {len(images):,} images, {expected:,} expected")
        images.hierarchy.update(card.levels(images))
        return images
