"""Fast: from parameters to scores in bf16, compiled where torch can."""

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from oodscope.activations.activations import Activations
from oodscope.base.hashing import fingerprint
from oodscope.deploy.scorer import Scorer
from oodscope.detectors.base import Needs
from oodscope.generation.search.target import Pipeline
from oodscope.generation.variations.base import Variation
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.network import first_line, returned_tensor
from oodscope.models.classifier.noise import noise_like

LIMIT = 64
"""Sizes, networks and variations that one process may compile for; torch's own limit of 8 ends in silence."""
KEPT = 8
"""Compiled functions that wait for the next search; with a network goes a copy of its weights."""

_KEPT: "OrderedDict[str, Compiled]" = OrderedDict()


class Compiled:
    """A function of tensors, compiled at its first call; all calls have the same shapes.

    Parameters
    ----------
    function : what to compile.
    what : its name, for the note where compiling fails.
    """

    def __init__(self, function: Callable[..., Tensor], what: str) -> None:
        self.note: str | None = None
        self._plain = function
        self._what = what
        self._chosen: Callable[..., Tensor] | None = None

    def __call__(self, *tensors: Tensor | None) -> Tensor:
        if self._chosen is None:
            return self._first(*tensors)
        return self._chosen(*tensors)

    def _first(self, *tensors: Tensor | None) -> Tensor:
        compiled = compile_for_one_size(self._plain)
        try:
            with torch._dynamo.config.patch(recompile_limit=LIMIT):
                result = compiled(*tensors)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # whatever a compiler says, the search can do without it
            self.note = f"the {self._what} runs uncompiled: torch.compile failed ({first_line(error)})"
            self._chosen = self._plain
            return self._plain(*tensors)
        self._chosen = compiled
        return result


def compile_for_one_size(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``torch.compile`` for fixed shapes."""
    compiled: Any = torch.compile(function, dynamic=False)
    return compiled  # type: ignore[no-any-return]


def kept(key: list[Any], make: Callable[[], Compiled]) -> Compiled:
    """The compiled function of an earlier search with the same key (plain JSON values), or a new one."""
    name = fingerprint(key)
    if name not in _KEPT:
        _KEPT[name] = make()
    _KEPT.move_to_end(name)
    while len(_KEPT) > KEPT:
        _KEPT.popitem(last=False)
    return _KEPT[name]


TOLERANCE = 1e-3
"""Outputs of trunk and classifier in float32 may differ by this share of their spread."""


class Trunk:
    """A copy of a classifier's network that returns features in one pass (logits, where there is no head).

    ``Classifier.forward`` catches features by a hook, at which a compiler stops. Here the head is replaced by the
    identity, so that features are simply what the network returns; ``agrees`` proves that they are the same.
    """

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier
        self.head = None if classifier.head is None else classifier.head.to(classifier.device)
        self.network = copy.deepcopy(classifier.model).eval().requires_grad_(False)
        self.network = self.network.to(memory_format=torch.channels_last)
        self._half = False
        if classifier.head_path:
            self.network.set_submodule(classifier.head_path, nn.Identity())

    def __call__(self, prepared: Tensor) -> Tensor:
        """Features ``[N, D]`` in float32 of images that are prepared for the network."""
        device = prepared.device.type
        with torch.autocast(device, dtype=torch.bfloat16) if self._half else nullcontext():
            returned = self.network(prepared.contiguous(memory_format=torch.channels_last))
        return returned_tensor(returned).flatten(1).float()

    def agrees(self, prepared: Tensor) -> bool:
        """Whether it says of some images what the classifier says; asked before ``halve``."""
        theirs = self.classifier.forward(prepared)
        wanted = theirs.logits if self.head is None else theirs.features
        try:
            ours = self(prepared)
        except Exception:  # a network that looks at its head from elsewhere breaks in ways of its own
            return False
        if wanted is None or ours.shape != wanted.shape:
            return False
        return bool((ours - wanted).abs().max() <= TOLERANCE * wanted.abs().max())

    def halve(self) -> "Trunk":
        """Multiply in bf16 from now on; norms and sums stay in float32, as autocast decides."""
        self._half = True
        for module in self.network.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                # cast once, not in every pass
                module.to(torch.bfloat16)
        return self


class FastPipeline:
    """Variation, preprocessing, network and detector for batches of one size, with the network in bf16.

    Features and logits are float32 before the detector sees them; its own float32 products may use TF32 on CUDA (a
    neighbour is sought so, its distance is exact). Variation and network are compiled apart, so that one network is
    compiled once for all variations and detectors. A detector that looks inside the network gets it uncompiled, under
    autocast.

    Parameters
    ----------
    batch : rows of every evaluation; fewer are filled up, so that nothing is compiled twice.
    """

    def __init__(self, scorer: Scorer, variation: Variation, batch: int) -> None:
        self.scorer, self.batch = scorer, batch
        self._trunk = _trunk(scorer)
        self._under_autocast = _under_autocast(scorer)
        place = [batch, str(scorer.device)]
        vary = _quick(variation, scorer.device)
        if self._trunk is None:
            self._vary = kept(["pixels", variation.describe(), *place], lambda: Compiled(vary, "variation"))
            return
        trunk, pixels, key = self._trunk.halve(), scorer.pixels, scorer.classifier.fingerprint
        self._vary = kept(
            ["prepared", variation.describe(), scorer.classifier.transform_key, *place],
            lambda: Compiled(lambda points, images: pixels(vary(points, images)), "variation"),
        )
        self._network = kept(["network", key, *place], lambda: Compiled(trunk.__call__, "network"))

    def __call__(self, points: Tensor, images: Tensor | None) -> Tensor:
        """Scores of as many points as there are, at most ``batch``."""
        rows = len(points)
        varied = self._vary(_filled(points, self.batch), None if images is None else _filled(images, self.batch))
        outputs = None if self._trunk is None else self._network(varied)[:rows]
        with quick_products(points.device):
            if self._trunk is None or outputs is None:
                return self._under_autocast.score_tensor(varied)[:rows]
            return self.scorer.detector.score_batch(_batch(outputs, self._trunk))

    @property
    def notes(self) -> tuple[str, ...]:
        """What did not go the fast way; complete after the first call."""
        parts = [self._vary.note]
        if self._trunk is not None:
            parts.append(self._network.note)
        elif self.scorer.detector.probes:
            parts.append(f"{self.scorer.detector.name} looks inside the network, which therefore runs uncompiled")
        else:
            parts.append(f"{self.scorer.classifier.name} runs uncompiled: its head could not be taken off")
        return tuple(part for part in parts if part)


def _quick(variation: Variation, device: torch.device) -> Pipeline:
    """A generator multiplies in bf16, like the network; changes of given pixels stay as they are."""
    if variation.conditional:
        return variation.__call__

    def draw(points: Tensor, images: Tensor | None) -> Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            return variation(points, images)

    return draw


@contextmanager
def quick_products(device: torch.device) -> Iterator[None]:
    """float32 products may be computed in TF32 inside the block, on CUDA."""
    if device.type != "cuda":
        yield
        return
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)


def _filled(rows: Tensor, batch: int) -> Tensor:
    """As many rows as the compiled functions want; the last one stands in for those that are missing."""
    missing = batch - len(rows)
    return rows if missing == 0 else torch.cat([rows, rows[-1:].expand(missing, *rows.shape[1:])])


def _batch(outputs: Tensor, trunk: Trunk) -> Activations:
    """One batch of activations from what a trunk returns."""
    columns = {"logits": outputs} if trunk.head is None else {"features": outputs, "logits": trunk.head.logits(outputs)}
    columns["prediction"] = columns["logits"].argmax(dim=1)
    return Activations.of_batch(columns, trunk.head)


def _trunk(scorer: Scorer) -> Trunk | None:
    """The network up to its head, if the detector needs no more and a few noise images prove it."""
    if scorer.detector.probes:
        return None
    if Needs.FEATURES in scorer.detector.needs and scorer.classifier.head is None:
        return None  # logits alone do not bring the features of a last layer that is not linear
    try:
        trunk = Trunk(scorer.classifier)
    except (RuntimeError, TypeError, ValueError, AttributeError):  # some networks refuse to be copied
        return None
    pixels = scorer.pixels
    noise = noise_like(torch.zeros(1, len(pixels.scale), *pixels.size)).to(scorer.device)
    return trunk if trunk.agrees(noise) else None


def _under_autocast(scorer: Scorer) -> Scorer:
    """The same scorer, whose network multiplies in bf16."""
    twin, classifier = copy.copy(scorer), copy.copy(scorer.classifier)
    forward = torch.autocast(scorer.device.type, dtype=torch.bfloat16)(classifier.forward)
    classifier.forward = forward  # type: ignore[method-assign]
    twin.classifier = classifier
    return twin
