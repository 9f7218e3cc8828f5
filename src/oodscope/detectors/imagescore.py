"""ImageScore: detectors with a network of their own, which need images and nothing of the classifier."""

import inspect
from collections.abc import Callable
from functools import lru_cache
from pathlib import PurePath
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.own import OwnScore
from oodscope.activations.probes.probe import Probe
from oodscope.base.errors import DetectorError, OodscopeError
from oodscope.detectors.base import Capabilities, Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.models.density.base import DensityModel
from oodscope.models.density.saved import build_density, density_file, load_density, pack_density, read_text

HOME = "runs/train/{recipe}-seed0"
"""Where ``oodscope train`` puts the network of a recipe unless told otherwise."""


class ImageScore(Detector):
    """A score of images by a network of its own; nothing is fitted, the network is trained beforehand.

    The classifier only says how images are cut to size. A saved detector holds its network.

    Class attributes
    ----------------
    recipe : the training that makes such a network.
    kinds : of the networks that it takes; see ``DensityModel.kind``.

    Parameters
    ----------
    network : the folder or file that ``oodscope train --recipe RECIPE`` wrote.
    """

    needs: ClassVar[Needs] = Needs.IMAGES
    cost: ClassVar[Cost] = Cost.PASSES
    recipe: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]

    def __init__(self, network: str = "") -> None:
        self.network = network

    @property
    def networks(self) -> dict[str, str]:
        return {"network": self.network}

    def recorded_params(self) -> dict[str, Any]:
        """With kind and fingerprint of a network in the place of its path: who reads a record has other folders."""
        return self.get_params(deep=False) | {key: self._recorded(key) for key in self.networks}

    def _recorded(self, parameter: str) -> str:
        """What records call a network; where there is none to open, its place if that is the usual one, or its last
        name: other places are folders of this machine."""
        place = self.networks[parameter]
        try:
            return _named(self.open_network(parameter))
        except OodscopeError:
            usual = inspect.signature(type(self)).parameters[parameter].default
            return place if place == usual else PurePath(place).name

    @property
    def identity(self) -> str:
        """The same with its networks: another training may lie in the same place."""
        return " ".join([self.id, *(self.open_network(parameter).fingerprint for parameter in self.networks)])

    def open_network(self, parameter: str = "network") -> DensityModel:
        """The trained network; where there is none, an error with the command that trains it."""
        kept = getattr(self, f"{parameter}_record_", None)
        if kept is not None:
            return _unflattened(kept, getattr(self, f"{parameter}_weights_"))
        file = density_file(self.networks[parameter])
        if not file.is_file():
            raise DetectorError(f"{self.name}: {self.missing(parameter)}")
        status = file.stat()
        model = _opened(str(file), status.st_mtime_ns, status.st_size)
        if model.kind not in self.kinds:
            raise DetectorError(
                f"{self.name}: {file} holds a network of kind {model.kind}; needed: {' or '.join(self.kinds)}"
            )
        return model

    def missing(self, parameter: str) -> str:
        """What to do where a network is not there."""
        return (
            f"needs a network of its own, and there is none in {self.networks[parameter]}: train one "
            f"(oodscope train --recipe {self.recipe} --benchmark NAME), or name another ({parameter}=PATH)"
        )

    def own_score(
        self, parameter: str = "network", form: str = "", score: Callable[[Any, Tensor], Tensor] | None = None
    ) -> OwnScore:
        """The probe of one of its networks; ``form`` and ``score`` where the network is not simply called."""
        name = f"own_score({self.recipe}, {self.networks[parameter]})"
        return OwnScore(name, lambda: self.open_network(parameter), form, score)

    @property
    def probes(self) -> tuple[Probe, ...]:
        return tuple(self.own_score(parameter) for parameter in self.networks)

    def unmet_requirement(self, capabilities: Capabilities) -> str | None:
        if not capabilities.images:
            return "needs images, and only activations were given"
        for parameter in self.networks:
            try:
                model = self.open_network(parameter)
            except OodscopeError as error:
                return str(error).removeprefix(f"{self.name}: ")
            if capabilities.image_shape == ():
                return "needs pixels, and the classifier's preprocessing does more than scale and shift them"
            if capabilities.image_shape and (reason := model.mismatch(capabilities.image_shape)):
                return reason
        return super().unmet_requirement(capabilities)

    def to(self, device: torch.device | str) -> Self:
        """Score there from now on; the network follows the images."""
        self._device = torch.device(device)
        return self

    def _score(self, batch: Activations) -> Tensor:
        return precise(batch[self.probes[0].column]).flatten()

    def _state(self) -> dict[str, Any]:
        """Its networks, so that whoever saves the detector saves them."""
        state: dict[str, Any] = {}
        for parameter, path in self.networks.items():
            record, weights = f"{parameter}_record_", f"{parameter}_weights_"
            if hasattr(self, record):
                state |= {record: getattr(self, record), weights: getattr(self, weights)}
            elif density_file(path).is_file():
                state |= dict(zip((record, weights), _flattened(self.open_network(parameter))))
        return state

    def _forget(self) -> None:
        for key in [key for key in vars(self) if key.endswith(("_record_", "_weights_"))]:
            delattr(self, key)


@lru_cache(maxsize=8)
def _opened(path: str, changed: int, size: int) -> DensityModel:
    """The network of a file, which is read again only where it has changed."""
    return load_density(path)


@lru_cache(maxsize=8)
def _named(model: DensityModel) -> str:
    """Kind and fingerprint of an opened network, whose weights are read once."""
    return f"{model.kind} {model.fingerprint[:16]}"


def _flattened(model: DensityModel) -> tuple[str, Tensor]:
    """The record of a network, and the bytes of its weights in the order of their names."""
    text, tensors = pack_density(model, {})
    parts = [tensors[name].reshape(-1).view(torch.uint8) for name in sorted(tensors)]
    return text, torch.cat(parts)


@lru_cache(maxsize=8)
def _unflattened(text: str, weights: Tensor) -> DensityModel:
    with torch.random.fork_rng(devices=[]):
        model = build_density(read_text(text).shape)
    content, start = weights.cpu().contiguous().numpy(), 0
    own = model.state_dict()
    for name in sorted(own):
        size = own[name].numel() * own[name].element_size()
        if start + size > len(content):
            raise DetectorError("the weights of a detector's network are cut off; fit it again")
        raw = torch.from_numpy(np.array(content[start : start + size]))
        own[name] = raw.view(own[name].dtype).reshape(own[name].shape)
        start += size
    if start != len(content):
        raise DetectorError("a detector holds more weights than its network has; fit it again")
    model.load_state_dict(own)
    return model.eval().requires_grad_(False)
