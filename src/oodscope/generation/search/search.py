"""``search``: the images of a variation that a detector takes for in-distribution most confidently."""

import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from oodscope.base.errors import DataError, DetectorError, OodscopeError, StorageError
from oodscope.base.files import write_text
from oodscope.base.hashing import canonical_json, fingerprint
from oodscope.deploy.function_scorer import TensorScorer
from oodscope.execution.progress import SILENT, Progress
from oodscope.generation.samplers.base import Sampler
from oodscope.generation.search.chains import Chains, name_of
from oodscope.generation.search.energy import Energy
from oodscope.generation.search.result import SearchResult
from oodscope.generation.variations.base import Variation

_LOG = logging.getLogger(__name__)


class BlockFolder:
    """A folder that belongs to one search, whose description is ``search.json``.

    Each block is one file, written whole, so a killed search goes on after its last block, and several processes may
    fill one folder with different blocks.
    """

    def __init__(self, folder: Path, description: dict[str, Any]) -> None:
        self.folder = folder
        self.description = description
        path = folder / "search.json"
        if path.exists():
            self._compare(path)
        else:
            write_text(path, json.dumps(self.description, indent=2, sort_keys=True) + "\n")

    def read(self, number: int) -> SearchResult | None:
        """A finished block; None if there is none, or none that is sound."""
        path = self._path(number)
        if not path.exists():
            return None
        try:
            result = SearchResult.load(path)
        except StorageError:
            _LOG.warning("%s is damaged and is searched again", path)
            return None
        return result if result.description == self.description else None

    def write(self, number: int, result: SearchResult) -> None:
        """Keep a block."""
        result.save(self._path(number))

    def _path(self, number: int) -> Path:
        return self.folder / f"block-{number:05d}.safetensors"

    def _compare(self, path: Path) -> None:
        try:
            theirs = json.loads(path.read_text(encoding="utf-8"))
            differs = sorted(
                key for key in {*theirs, *self.description} if theirs.get(key) != self.description.get(key)
            )
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise StorageError(f"{path}: not the description of a search; choose another folder") from error
        if differs:
            raise StorageError(
                f"{self.folder} holds another search: {', '.join(differs)} differ. Delete it or choose another folder"
            )


def search(
    scorer: TensorScorer,
    variation: Variation,
    sampler: Sampler,
    budget: int | Sequence[int],
    images: Tensor | None = None,
    *,
    chains: int | None = None,
    energy: Energy | None = None,
    block: int = 1000,
    blocks: Iterable[int] | None = None,
    seed: int = 0,
    fast: bool | None = None,
    folder: Path | str | None = None,
    earlier: SearchResult | None = None,
    progress: Progress = SILENT,
) -> SearchResult:
    """The lowest score of each chain within a budget, and the parameters that reach it.

    One chain per image, all chains of a block at once on the scorer's device. Every chain starts at the identity
    where the variation has one, so an attack never does worse than no attack. The minimum is over all visited states.
    Blocks have a fixed size and random numbers of their own: a result does not depend on which process searched which
    blocks, or in which order, and with another block size it is another draw of the same law.

    Parameters
    ----------
    scorer : what is attacked; larger = more OOD.
    variation : which images there are.
    sampler : how chains move.
    budget : scorer evaluations per chain after the start; or several, all served by one run.
    images : ``[N, C, H, W]`` source images in [0, 1]; None for a generator.
    chains : how many, for a generator.
    energy : the scale on which the sampler weighs scores; None takes scores as they are.
    block : chains per block. On a GPU, a few thousand keep it busy.
    blocks : the numbers of the blocks to search, for one shard of many (``SearchResult.join``); None takes all.
    seed : of all random numbers.
    fast : search in bf16 with a compiled network, and score the best states again in float32. None: on CUDA.
    folder : where finished blocks are kept; a killed search goes on after the last of them.
    earlier : a search of the same scorer, variation and images by another sampler: the scorer is not checked again, and
        its scores of the source images are those of that search.
    progress : one stage per block, with the falling minimum.
    """
    budgets = _budgets(budget, sampler)
    count = _count(variation, images, chains)
    if block < 1:
        raise OodscopeError(f"block is the number of chains that are searched together, not {block}")
    _check_gradients(scorer, variation, sampler)
    fast = scorer.device.type == "cuda" if fast is None else fast
    runner = Chains(scorer, variation, sampler, energy, budgets, min(block, count), seed, fast, earlier)
    # as it will be read back, so that a block from disk and a fresh one agree
    description = json.loads(
        canonical_json(
            {
                **runner.describe(),
                "block": block,
                "chains": count,
                "images": None if images is None else fingerprint(images.detach().cpu().contiguous().numpy()),
            }
        )
    )
    blocks_folder = None if folder is None else BlockFolder(Path(folder), description)
    parts = []
    for number in _numbers(blocks, -(-count // block)):
        result = blocks_folder.read(number) if blocks_folder else None
        if result is None:
            rows = slice(number * block, min((number + 1) * block, count))
            result = runner.run(number, rows, images, description, progress)
            if blocks_folder:
                blocks_folder.write(number, result)
        parts.append(result)
    return SearchResult.join(parts)


def _budgets(budget: int | Sequence[int], sampler: Sampler) -> tuple[int, ...]:
    budgets = tuple(sorted({budget} if isinstance(budget, int) else set(budget)))
    if not budgets or budgets[0] < 1:
        raise OodscopeError(f"a budget is a number of scorer evaluations per chain, 1 or more, not {budget}")
    if budgets[-1] < sampler.evaluations:
        raise OodscopeError(
            f"{sampler.name} evaluates {sampler.evaluations} times per step; a budget of {budgets[-1]} allows none"
        )
    return budgets


def _count(variation: Variation, images: Tensor | None, chains: int | None) -> int:
    """How many chains there are: one per image, or as many as are asked of a generator."""
    if not variation.conditional:
        if images is not None or chains is None or chains < 1:
            raise DataError(f"{variation.name} makes its own images: say how many with chains=, and pass no images")
        return chains
    if images is None or len(images) == 0 or chains not in (None, len(images)):
        raise DataError(f"{variation.name} varies source images: pass images=, one per chain")
    if images.ndim != 4 or not images.is_floating_point():
        raise DataError(
            f"source images must be float pixels in [0, 1], [N, C, H, W]; got {images.dtype} {list(images.shape)}"
        )
    return len(images)


def _check_gradients(scorer: TensorScorer, variation: Variation, sampler: Sampler) -> None:
    if not sampler.gradient:
        return
    advice = "Use a sampler without gradients, such as mh"
    if not variation.differentiable:
        raise OodscopeError(f"{sampler.name} follows gradients, and {variation.name} has none. {advice}")
    if not getattr(scorer, "differentiable", True):
        raise DetectorError(f"{sampler.name} follows gradients, and the score of {name_of(scorer)} has none. {advice}")


def _numbers(blocks: Iterable[int] | None, total: int) -> list[int]:
    numbers = list(range(total)) if blocks is None else sorted(set(blocks))
    if not numbers or numbers[0] < 0 or numbers[-1] >= total:
        raise OodscopeError(f"this search has the blocks 0 to {total - 1}, not {numbers}")
    return numbers
