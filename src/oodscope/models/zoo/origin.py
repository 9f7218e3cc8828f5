"""ModelOrigin: which network of the zoo it is, so that it can be made again elsewhere."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field
from torch import nn

from oodscope.base.config import StrictModel
from oodscope.base.errors import ModelError
from oodscope.models.classifier.checkpoint import Weights, load_weights
from oodscope.models.classifier.ensemble import Ensemble
from oodscope.models.zoo.backbones import create_backbone
from oodscope.models.zoo.zero_shot import TextHead
from oodscope.models.zoo.zoo import ZooModel, create_model


class ModelOrigin(StrictModel):
    """How the zoo makes the network.

    Parameters
    ----------
    architecture : a name of the zoo.
    pretrained : whether its weights, and with them its transform, are the published ones.
    members : how many networks of this kind vote.
    headless : whether it ends in features (``create_backbone``), to which a head was given or fitted.
    width : of those features, where the network has several.
    text_head : how a network that classifies by words is given its classes.
    """

    architecture: str
    pretrained: bool = False
    members: int = Field(default=1, gt=0)
    headless: bool = False
    width: int | None = None
    text_head: TextHead | None = None

    def build(
        self,
        num_classes: int | None,
        weights: Weights | Sequence[str | Path] = (),
        *,
        class_names: Sequence[str] = (),
        device: str = "auto",
    ) -> ZooModel:
        """The network with these weights: files, one per member, or the state dict of the whole network.

        Parameters
        ----------
        num_classes : by default what the weights have.
        class_names, device : of networks that classify by words: their classes, and where the words are embedded.
        """

        words: dict[str, Any] = {"class_names": class_names, "device": device}

        def make(state: Any) -> ZooModel:
            return self._make(state, num_classes, **words)

        if self.pretrained:
            return make("pretrained")
        states = self._split(weights) if isinstance(weights, dict) else list(weights)
        if len(states) != self.members:
            raise ModelError(f"{self.members} x {self.architecture} needs {self.members} weights, not {len(states)}")
        # the towers and backbones of libraries read files of several layouts, none of them our own state dict
        whole = isinstance(weights, dict) and (self.headless or self.architecture.startswith("open_clip:"))
        made = [_filled(make(None), state) if whole else make(state) for state in states]
        return ZooModel(vote([each.model for each in made]), made[0].transform)

    def _make(self, state: Any, num_classes: int | None, **words: Any) -> ZooModel:
        """One network; ``state`` is ``pretrained``, a file, a state dict, or None for random weights."""
        if self.headless:
            return create_backbone(self.architecture, weights=state, width=self.width)
        return create_model(
            self.architecture, num_classes=num_classes, weights=state, text_head=self.text_head, **words
        )

    def _split(self, state: Weights) -> list[Weights]:
        if self.members == 1:
            return [state]
        heads = [f"members.{number}." for number in range(self.members)]
        return [{key.removeprefix(head): state[key] for key in state if key.startswith(head)} for head in heads]


def vote(models: list[nn.Module]) -> nn.Module:
    """The network itself if there is one; several as an ensemble."""
    return models[0] if len(models) == 1 else Ensemble(models)


def _filled(made: ZooModel, state: Any) -> ZooModel:
    load_weights(made.model, state, "the state dict")
    return made
