"""ModelOrigin: which architecture of the zoo a network is, so that it can be made again elsewhere."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field
from torch import nn

from oodscope.base.config import StrictModel
from oodscope.base.errors import ModelError
from oodscope.models.classifier.checkpoint import Weights
from oodscope.models.classifier.ensemble import Ensemble
from oodscope.models.zoo.zoo import ZooModel, create_model


class ModelOrigin(StrictModel):
    """How ``create_model`` makes the network.

    Parameters
    ----------
    architecture : a name of the zoo.
    pretrained : whether its weights, and with them its transform, are the published ones.
    members : how many networks of this kind vote.
    """

    architecture: str
    pretrained: bool = False
    members: int = Field(default=1, gt=0)

    def build(self, num_classes: int | None, weights: Weights | Sequence[str | Path] = ()) -> ZooModel:
        """The network with these weights: files, one per member, or the state dict of the whole network."""
        if self.pretrained:
            return create_model(self.architecture, num_classes=num_classes, weights="pretrained")
        states = self._split(weights) if isinstance(weights, dict) else list(weights)
        if len(states) != self.members:
            raise ModelError(f"{self.members} x {self.architecture} needs {self.members} weights, not {len(states)}")
        made = [create_model(self.architecture, num_classes=num_classes, weights=state)[0] for state in states]
        return ZooModel(vote(made), None)

    def _split(self, state: Weights) -> list[Weights]:
        if self.members == 1:
            return [state]
        heads = [f"members.{number}." for number in range(self.members)]
        return [{key.removeprefix(head): state[key] for key in state if key.startswith(head)} for head in heads]


def vote(models: list[nn.Module]) -> nn.Module:
    """The network itself if there is one; several as an ensemble."""
    return models[0] if len(models) == 1 else Ensemble(models)
