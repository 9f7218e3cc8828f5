"""A benchmark or dataset in plain words and numbers, for ``oodscope data show``."""

from pathlib import Path
from typing import Any

from oodscope.data.corruptions.sets import CorruptedSpec
from oodscope.data.manifest import SetSpec
from oodscope.data.public.cards import Card, load_card
from oodscope.data.public.datasetspec import DatasetSpec
from oodscope.data.public.needs import read_benchmark, states
from oodscope.data.public.state import State, state_of


def describe_benchmark(name: str, root: Path) -> dict[str, Any]:
    """Its roles with set, count, origin and state, its preprocessing, and the cards of its datasets."""
    manifest, wanted = read_benchmark(name)
    known: dict[tuple[str, str], State] = {}
    states(wanted, root, known)
    cards = {each.card.name: each.card for each in wanted}
    return {
        "benchmark": manifest.name,
        "version": manifest.version,
        "summary": manifest.description,
        "paper": manifest.paper,
        "preprocessing": None
        if manifest.transform is None
        else manifest.transform.model_dump(mode="json", exclude_none=True),
        "root": str(root),
        "sets": [_set(role, label, spec, known) for role, label, spec in manifest.sets.by_role()],
        "datasets": [describe_dataset(card, root) for card in cards.values()],
    }


def describe_dataset(card: Card, root: Path) -> dict[str, Any]:
    """Its terms, its splits with count, place and state, and what to fetch."""
    fetch = [each for name in (card.name, *card.requires) for each in load_card(name).fetch]
    described = [each.model_dump(exclude_defaults=True) | ({"trust": each.trust} if each.url else {}) for each in fetch]
    return {
        "dataset": card.name,
        "title": card.title,
        "summary": card.summary,
        "licence": card.licence,
        "home": card.home,
        "splits": {
            split: {"count": layout.count, "state": str(state_of(card, split, root)), **_place(layout.model_dump())}
            for split, layout in card.splits.items()
        },
        "fetch": described,
    }


def _set(role: str, label: str, spec: SetSpec, known: dict[tuple[str, str], State]) -> dict[str, Any]:
    if isinstance(spec, CorruptedSpec):
        made = f"corruptions {spec.kind} of {spec.of}, seed {spec.seed}"
        return {"role": role, "set": label, "count": spec.count, "from": made, "state": str(State.READY)}
    if not isinstance(spec, DatasetSpec):
        return {"role": role, "set": label, "count": None, "from": spec.source, "state": str(State.READY)}
    cuts = spec.model_dump(include={"rows", "classes", "random", "center_crop"}, exclude_none=True)
    said = "".join(f", {key} {_words(value)}" for key, value in cuts.items())
    return {
        "role": role,
        "set": label,
        "count": spec.count,
        "from": f"{spec.dataset}/{'+'.join(spec.splits)}{said}",
        "state": _state(spec, known),
        **({"optional": True} if spec.optional else {}),
    }


def _state(spec: DatasetSpec, known: dict[tuple[str, str], State]) -> str:
    seen = {known[spec.dataset, split] for split in spec.splits}
    return str(seen.pop() if len(seen) == 1 else State.PARTIAL)


def _place(layout: dict[str, Any]) -> dict[str, Any]:
    kept = {key: layout[key] for key in ("layout", "path", "folder", "dataset") if layout.get(key)}
    return {**kept, "files": list(layout["files"])} if layout["files"] else kept


def _words(value: Any) -> str:
    return ", ".join(f"{key} {each}" for key, each in value.items()) if isinstance(value, dict) else str(value)
