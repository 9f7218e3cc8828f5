"""SearchResult: the lowest-scoring image of every chain of a search."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from oodscope.base.errors import DataError, StorageError
from oodscope.base.files import atomic_path, checksum
from oodscope.generation.variations.base import Variation

FORMAT = 1


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The most ID-like image of each chain; all tensors on the CPU, chains in order.

    Parameters
    ----------
    points : ``[N, D]`` best parameters.
    scores : ``[N]`` score of the best state, scored again in float32; never above ``clean`` where the variation
        contains the identity.
    searched : ``[N]`` the score of that state as the search itself saw it, perhaps in bf16.
    clean : ``[N]`` score of the source images in float32; None for a generator.
    at_budget : ``[B, N]`` lowest score that the search saw within each of the ``budgets``.
    acceptance : ``[N]`` share of accepted moves.
    improved_at : ``[N]`` the last evaluation that lowered the minimum; 0 where the start was never beaten.
    last : ``[N, D]`` where the chains ended: samples of the law, where the sampler has one.
    evaluations : scorer evaluations of all chains together, starts and re-scoring not counted.
    seconds : that the blocks took.
    blocks : numbers of the blocks of chains that are in here.
    description : all that decides the result: scorer, variation, sampler, energy, budgets, seed, block, images.
    notes : what was not as asked.
    """

    points: Tensor
    scores: Tensor
    searched: Tensor
    clean: Tensor | None
    at_budget: Tensor
    acceptance: Tensor
    improved_at: Tensor
    last: Tensor
    evaluations: int
    seconds: float
    blocks: tuple[int, ...]
    description: dict[str, Any]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        steps = f"{self.budgets[-1]:,} evaluations of {len(self):,} chains"
        lowest = f"minimum {float(self.scores.min()):.4g}"
        return f"SearchResult({self.scorer} under {self.variation['name']}, {steps}, {lowest})"

    @property
    def budgets(self) -> tuple[int, ...]:
        """Evaluations per chain after the start."""
        return tuple(self.description["budgets"])

    @property
    def block(self) -> int:
        """Chains per block, the unit of randomness."""
        return int(self.description["block"])

    @property
    def seed(self) -> int:
        return int(self.description["seed"])

    @property
    def scorer(self) -> str:
        """The name of what was attacked."""
        return str(self.description["scorer"]["name"])

    @property
    def variation(self) -> dict[str, Any]:
        return dict(self.description["variation"])

    @property
    def sampler(self) -> dict[str, Any]:
        return dict(self.description["sampler"])

    @property
    def precision_gap(self) -> Tensor:
        """``[N]`` score in float32 minus what the search saw of the same state."""
        return self.scores - self.searched

    @classmethod
    def join(cls, parts: Iterable["SearchResult"]) -> "SearchResult":
        """One result from results of other blocks of the same search, in any order."""
        ordered = sorted(parts, key=lambda part: part.blocks)
        if not ordered:
            raise DataError("nothing to join: no parts of a search")
        numbers = [number for part in ordered for number in part.blocks]
        if any(part.description != ordered[0].description for part in ordered):
            raise DataError("these are parts of different searches; join parts that share one description")
        if numbers != sorted(set(numbers)):
            raise DataError(f"parts of a search overlap or interleave: blocks {numbers}")
        rows = {name: torch.cat([getattr(part, name) for part in ordered]) for name in _ROWS}
        return cls(
            **rows,
            clean=None if ordered[0].clean is None else torch.cat([_some(part.clean) for part in ordered]),
            at_budget=torch.cat([part.at_budget for part in ordered], dim=1),
            evaluations=sum(part.evaluations for part in ordered),
            seconds=sum(part.seconds for part in ordered),
            blocks=tuple(numbers),
            description=ordered[0].description,
            notes=tuple(dict.fromkeys(note for part in ordered for note in part.notes)),
        )

    def save(self, path: Path | str) -> None:
        """Write one safetensors file, whole or not at all, with the rest as JSON in its header."""
        values = {name: getattr(self, name) for name in (*_ROWS, "at_budget", "clean")}
        tensors = {name: value.contiguous() for name, value in values.items() if value is not None}
        record = {name: getattr(self, name) for name in _RECORD}
        header = {"format": FORMAT, "checksum": _checksum(tensors), **record}
        with atomic_path(path) as temporary:
            save_file(tensors, temporary, metadata={"oodscope": json.dumps(header)})

    @classmethod
    def load(cls, path: Path | str) -> "SearchResult":
        """Read a file that ``save`` wrote, or a folder that ``search`` filled."""
        path = Path(path)
        if path.is_dir():
            return cls.join([cls.load(part) for part in sorted(path.glob("block-*.safetensors"))])
        try:
            with safe_open(path, framework="pt") as content:
                record = json.loads((content.metadata() or {}).get("oodscope", "null"))
                tensors = {key: content.get_tensor(key) for key in content.keys()}  # noqa: SIM118  # not a dict
            intact = record["format"] == FORMAT and record["checksum"] == _checksum(tensors)
            values = {name: record[name] for name in _RECORD}
            lists = {name: tuple(values[name]) for name in ("blocks", "notes")}
            # a tensor under a damaged name is one too many here, and another is missing
            result = cls(**{"clean": None, **tensors}, **{**values, **lists})
        except (OSError, SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise StorageError(f"{path}: not the result of a search ({error})") from error
        if not intact:
            raise StorageError(f"{path}: damaged, or written by another version of oodscope; delete it")
        return result


def images_of(
    result: SearchResult, variation: Variation, images: Tensor | None = None, *, batch_size: int = 1000
) -> Tensor:
    """The worst images again, ``[N, C, H, W]`` in [0, 1] on the CPU; ``images`` as they were given to ``search``."""
    if images is not None and len(images) != len(result):
        raise DataError(f"{len(result)} chains were searched, but there are {len(images)} source images")
    parts = []
    for start in range(0, len(result), batch_size):
        rows = slice(start, start + batch_size)
        with torch.no_grad():
            parts.append(variation(result.points[rows], None if images is None else images[rows].cpu()))
    return torch.cat(parts)


_RECORD = ("evaluations", "seconds", "blocks", "description", "notes")
_ROWS = tuple(field.name for field in fields(SearchResult) if field.name not in (*_RECORD, "clean", "at_budget"))


def _some(values: Tensor | None) -> Tensor:
    if values is None:
        raise DataError("these are parts of different searches: only some have source images")
    return values


def _checksum(tensors: dict[str, Tensor]) -> int:
    return checksum(b"".join(tensors[name].numpy().tobytes() for name in sorted(tensors)))
