"""Which splits a benchmark, or a dataset as a whole, needs."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from oodscope.base.errors import UnknownNameError
from oodscope.data.manifest import Manifest, read_manifest
from oodscope.data.packaged import find, names_in
from oodscope.data.public.cards import load_card
from oodscope.data.public.datasetspec import DatasetSpec
from oodscope.data.public.prepare import Wanted
from oodscope.data.public.state import State, state_of


def needs_of(name: str) -> list[Wanted]:
    """The splits behind a benchmark or dataset by name; the benchmark where both have the name."""
    if name in names_in("benchmarks"):
        return read_benchmark(name)[1]
    if name in names_in("datasets"):
        return dataset_needs(name)
    known = [*names_in("benchmarks"), *names_in("datasets")]
    raise UnknownNameError("benchmark or dataset", name, known, "See: oodscope data list")


def dataset_needs(name: str) -> list[Wanted]:
    """Every split of a dataset."""
    card = load_card(name)
    return [Wanted(card, split) for split in card.splits]


def read_benchmark(name: str) -> tuple[Manifest, list[Wanted]]:
    """A packaged manifest, and each split that it needs, once."""
    manifest = read_manifest(find("benchmark", name))
    found: dict[tuple[str, str], Wanted] = {}
    for _, _, spec in manifest.sets.by_role():
        if isinstance(spec, DatasetSpec):
            for split in spec.splits:
                before = found.get((spec.dataset, split))
                optional = spec.optional and (before is None or before.optional)
                found[spec.dataset, split] = Wanted(load_card(spec.dataset), split, optional)
    return manifest, list(found.values())


def states(wanted: Sequence[Wanted], root: Path, known: dict[tuple[str, str], State]) -> list[tuple[Wanted, State]]:
    """The state of each split; ``known`` remembers those that were looked at before."""
    for each in wanted:
        key = (each.card.name, each.split)
        if key not in known:
            known[key] = state_of(each.card, each.split, root)
    return [(each, known[each.card.name, each.split]) for each in wanted]


def overall(found: Iterable[tuple[Wanted, State]]) -> State:
    """One word for many splits: the state of all, or ``partial``; what is optional counts where there is nothing else.

    A benchmark that needs no dataset (it is drawn, not read) is ready.
    """
    pairs = list(found)
    needed = [state for each, state in pairs if not each.optional] or [state for _, state in pairs]
    seen = set(needed)
    if not seen:
        return State.READY
    if len(seen) == 1:
        return seen.pop()
    return State.UNVERIFIED if seen == {State.READY, State.UNVERIFIED} else State.PARTIAL
