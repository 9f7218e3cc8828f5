"""Classifier: any network, with its preprocessing, its head and an identity."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import get_args

import torch
from PIL import Image
from torch import Tensor, nn

from oodscope.base.errors import ModelError, UnknownNameError
from oodscope.base.hashing import fingerprint
from oodscope.data.corpora import get_corpus
from oodscope.data.images.base import Picture
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.anatomy import Anatomy, examine
from oodscope.models.classifier.discovery import DiscoveredHead, locate_head, named_module, read_head
from oodscope.models.classifier.fingerprint import structure_fingerprint, weights_fingerprint
from oodscope.models.classifier.head import Head
from oodscope.models.classifier.last_layer import find_last_layer
from oodscope.models.classifier.network import (
    NetworkError,
    Outputs,
    Precision,
    at_precision,
    choose_device,
    evaluating,
    run_network,
    weights_at_rest,
)
from oodscope.models.classifier.noise import SIDES, noise_images, noise_like
from oodscope.models.classifier.trace import captured_input, linear_weight
from oodscope.models.classifier.transform import PreparedBy
from oodscope.models.zoo.zero_shot import ZeroShot


def describe(classifier: "Classifier") -> str:
    """Architecture, head and its proof (or why there is none and what that means), transform, device."""
    count = sum(parameter.numel() for parameter in classifier.model.parameters())
    lines = [f"{classifier.name}: {type(classifier.model).__name__}, {count:,} parameters"]
    if classifier.transform is None:
        lines += ["head: not sought, because there is no transform", "transform: none; a benchmark brings its own"]
    else:
        lines[0] += f", {classifier.num_classes} {'features' if classifier.embedding else 'classes'}"
        lines += [f"head: {_head(classifier)}", f"transform: {_transform(classifier)}"]
    if isinstance(classifier.model, ZeroShot):
        lines.append(f"words: {classifier.model.describe()}")
    return "\n".join([*lines, f"device: {classifier.device}"])


def _head(classifier: "Classifier") -> str:
    head = classifier.head
    if classifier.embedding:
        return f"none: {classifier.head_reason}. Only detectors that read features apply"
    if head is None and classifier.has_features:
        return (
            f"none: {classifier.head_reason}. Features are what the last layer reads; detectors that need head weights "
            "do not apply"
        )
    if head is None:
        return (
            f"none: {classifier.head_reason}. Detectors that need features or head weights do not apply; "
            "those that read logits do"
        )
    if classifier.head_path is None:
        return f"given, {head.dim} features"
    name = classifier.head_path or "the network itself"
    return (
        f"{name}, {head.dim} features; proved: features · Wᵀ + b equals the logits to "
        f"{classifier.head_deviation:.1e} of their spread"
    )


def _transform(classifier: "Classifier") -> str:
    transform = classifier.transform
    text = str(transform) if isinstance(transform, Preprocess) else " ".join(repr(transform).split())
    if classifier.uncached_reason:
        text += f" (its activations are not shared between runs: {classifier.uncached_reason})"
    return text


class Classifier:
    """Any ``nn.Module`` that turns images into logits.

    The network is moved to ``device`` and otherwise left alone: whatever runs here runs in evaluation
    mode, and modules that were training go on training afterwards. The head is sought at the first use, with
    one extra pass over four noise images; from then on ``forward`` is one pass per batch.

    Parameters
    ----------
    model : returns a tensor ``[N, C]``, a dict or object with ``logits``, or a tuple that begins with them.
    transform : a ``Preprocess`` or any callable from a Pillow image to a tensor (torchvision, timm). Without
        one, a benchmark's default is used (``with_default_transform``).
    head : the name of the head module, if the search should not choose; it must still pass the proof. Or a
        ``Head``: then the network's output counts as features and the logits are ``head.logits(features)``.
    device : ``"auto"`` is CUDA if there is one, else MPS, else the CPU.
    name : how tables call it; by default the network's class.
    embedding : whether the network ends in an embedding (CIDER, NPOS, DINOv2): its output counts as features, there
        are no classes, and only detectors that read features apply.
    precision : of its products: ``"float32"`` on every device, ``"tf32"`` (CUDA only, eleven bits), or ``"bf16"``. Part
        of the address of stored activations and of the record of a run.
    trained_on : what its weights were trained on: image sets, or names of sets or roles of the benchmark it will be
        judged on. Test images among them are counted, and every row says so.
    pretrained_on : what its weights saw before that, such as ``"imagenet21k"`` (``oodscope.data.corpora``).

    Examples
    --------
    >>> clf = oods.Classifier(model, oods.Preprocess(size=8), device="cpu")
    >>> clf.num_classes
    4
    """

    def __init__(
        self,
        model: nn.Module,
        transform: Preprocess | Callable[[Image.Image], Tensor] | None = None,
        *,
        head: str | Head | None = None,
        device: str | torch.device = "auto",
        name: str | None = None,
        embedding: bool = False,
        precision: Precision = "float32",
        trained_on: Iterable[ImageSet | str] = (),
        pretrained_on: Iterable[str] = (),
    ) -> None:
        if not isinstance(model, nn.Module):
            raise ModelError(f"a classifier is made from a torch.nn.Module, not a {type(model).__name__}")
        self.device = choose_device(device)
        self.model = _unwrapped(model).to(self.device)
        self.name = name or type(self.model).__name__
        if precision not in get_args(Precision):
            raise UnknownNameError("precision", str(precision), get_args(Precision), "Known: float32, tf32, bf16")
        if embedding and head is not None:
            raise ModelError(f"{self.name}: a network that ends in an embedding has no head; give one of the two")
        self.embedding = embedding
        self.precision: Precision = precision
        self.trained_on = tuple(trained_on)
        self.pretrained_on = tuple(get_corpus(each).name for each in pretrained_on)
        self._wanted = head
        self._found: DiscoveredHead | None = None
        self._anatomy: Anatomy | None = None
        self._prepared_by = None if transform is None else PreparedBy(transform, _picture_mode(self.model))
        if isinstance(head, str):
            named_module(self.model, head)
        elif isinstance(head, Head):
            self._wanted = head.to(self.device)
            self._found = DiscoveredHead(None, head.num_classes)

    def __repr__(self) -> str:
        return f"Classifier({self.name!r}, device={str(self.device)!r})"

    def describe(self) -> str:
        """A few lines to read: architecture, head and its proof, transform, device."""
        return describe(self)

    @property
    def transform(self) -> Preprocess | Callable[[Image.Image], Tensor] | None:
        """What turns a picture into the network's input."""
        return None if self._prepared_by is None else self._prepared_by.transform

    @property
    def transform_key(self) -> str:
        """Equal only for equal preprocessing: part of the address of stored activations."""
        return self._preparation().key

    @property
    def uncached_reason(self) -> str:
        """Why stored activations cannot be served to another run; empty if they can."""
        return self._preparation().uncached

    def with_default_transform(self, transform: Preprocess | None) -> "Classifier":
        """This classifier if it has a transform; otherwise another over the same network, with this one."""
        if self._prepared_by is not None or transform is None:
            return self
        twin = copy.copy(self)
        twin._prepared_by = PreparedBy(transform)
        return twin

    def with_history(self, trained_on: Iterable[ImageSet | str], pretrained_on: Iterable[str]) -> "Classifier":
        """Another over the same network that has also seen these; see the parameters of the class."""
        twin = copy.copy(self)
        twin.trained_on = (*self.trained_on, *(each for each in trained_on if each not in self.trained_on))
        corpora = (get_corpus(each).name for each in pretrained_on)
        twin.pretrained_on = (*self.pretrained_on, *(each for each in corpora if each not in self.pretrained_on))
        return twin

    def prepare(self, images: Sequence[Picture]) -> Tensor:
        """A batch on the CPU from Pillow images or uint8 arrays ``[H, W]`` or ``[H, W, C]``."""
        return self._preparation()(images)

    def forward(self, batch: Tensor, *, grad: bool = False) -> Outputs:
        """Logits and features of a prepared batch, in exactly one pass through the network.

        With ``grad=True`` autograd records the pass, so that the logits can be differentiated with respect
        to ``batch`` (the weights gather no gradients); otherwise nothing is recorded.
        """
        path = self._reads_features(batch)
        # not inference_mode: networks cache tensors (position tables) that a later pass with gradients
        # must be able to use
        with (
            evaluating(self.model),
            at_precision(self.device, self.precision),
            torch.set_grad_enabled(grad),
            weights_at_rest(self.model) if grad else nullcontext(),
            captured_input(self.model, path) as seen,
        ):
            output = run_network(self.model, batch.to(self.device)).float()
        if isinstance(self._wanted, Head):
            return Outputs(self._wanted.logits(output), output)
        if self.embedding:
            return Outputs(output, None)
        return Outputs(output, None if path is None else self._features(seen, path, batch.shape[0]))

    @property
    def has_features(self) -> bool:
        """Whether ``forward`` gives features: the input of a head, or of a last layer that is not linear."""
        return isinstance(self._wanted, Head) or self._reads_features() is not None

    @property
    def num_classes(self) -> int:
        """The number of logits."""
        return self._search().num_classes

    @property
    def head(self) -> Head | None:
        """The head with its present weights, on the CPU; ``None`` if there is none (``head_reason``)."""
        if isinstance(self._wanted, Head):
            return self._wanted.to("cpu")
        path = self._search().path
        return None if path is None else read_head(self.model, path)

    @property
    def head_path(self) -> str | None:
        """The name of the head inside the network; ``None`` if there is none or it was given as numbers."""
        return self._search().path

    @property
    def head_reason(self) -> str:
        """Why there is no head, in words; empty if there is one."""
        return self._search().reason

    @property
    def head_deviation(self) -> float | None:
        """The largest error of ``features · Wᵀ + b`` on noise, as a fraction of the logits' spread."""
        return self._search().deviation

    @property
    def anatomy(self) -> Anatomy:
        """Its feature maps, members and the sign of its features, found on noise at the first use."""
        if self._anatomy is None:
            failure: NetworkError | None = None
            for images in self._noise(None):
                try:
                    self._anatomy = examine(self, images.to(self.device))
                    break
                except NetworkError as error:
                    failure = failure or error
            else:
                raise failure or ModelError(f"{self.name}: no noise image could be made to look inside")
        return self._anatomy

    @property
    def fingerprint(self) -> str:
        """Of weights, structure and head; read from the weights each time, so that training changes it."""
        given = self._wanted.to("cpu") if isinstance(self._wanted, Head) else None
        head = [self.head_path] if given is None else [given.weight.numpy(), given.bias.numpy()]
        return fingerprint("model", weights_fingerprint(self.model), structure_fingerprint(self.model), *head)

    def _preparation(self) -> PreparedBy:
        if self._prepared_by is None:
            raise ModelError(
                f"{self.name} has no transform: pass --transform '{{size: 32, mean: [...], std: [...]}}' "
                "(in Python transform=Preprocess(size=..., mean=..., std=...), or its torchvision or timm transform)"
            )
        return self._prepared_by

    def _search(self, batch: Tensor | None = None) -> DiscoveredHead:
        """The head, sought once, on noise that looks like the images this network will see."""
        if self._found is None:
            wanted = self._wanted if isinstance(self._wanted, str) else None
            noise = (images.to(self.device) for images in self._noise(batch))
            self._found = locate_head(self.model, noise, wanted)
            if self.embedding:
                self._found = DiscoveredHead(None, self._found.num_classes, reason="the network ends in an embedding")
        return self._found

    def _reads_features(self, batch: Tensor | None = None) -> str | None:
        """The layer whose input are the features."""
        path = self._search(batch).path
        if self.embedding:
            return None
        return find_last_layer(self.model) if path is None and not isinstance(self._wanted, Head) else path

    def _noise(self, batch: Tensor | None) -> Iterator[Tensor]:
        if self._prepared_by is None and batch is not None:
            yield noise_like(batch)
            return
        channels = 1 if _picture_mode(self.model) == "L" else 3
        own_side = () if batch is None else (batch.shape[-1],)
        for side in (*own_side, *SIDES):
            yield self.prepare(noise_images(side, channels))

    def _features(self, seen: list[Tensor], path: str, rows: int) -> Tensor:
        if not seen:
            raise ModelError(f"{self.name}: the head {path!r} did not take part in this pass")
        layer = self.model.get_submodule(path)
        weight = linear_weight(layer)
        one_vector = seen[-1].ndim == 2 if weight is None else seen[-1].numel() == rows * weight[0].numel()
        if not one_vector:
            raise ModelError(
                f"{self.name}: the head {path!r} read {list(seen[-1].shape)} in this pass, not one vector of "
                "features per image; are the images of another size than the network expects?"
            )
        return seen[-1].reshape(rows, -1).float()


def _unwrapped(model: nn.Module) -> nn.Module:
    """The network inside a parallel wrapper, whose replicas would write their features over each other."""
    if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
        inner: nn.Module = model.module
        return inner
    return model


def _picture_mode(model: nn.Module) -> str | None:
    """Colour or grey, as the network's first convolution says; ``None`` if it has none."""
    first = next((module for module in model.modules() if isinstance(module, nn.Conv2d)), None)
    return None if first is None else {1: "L", 3: "RGB"}.get(first.in_channels)
