"""Branches: further outputs beside the logits, read off the same features."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from oodscope.models.classifier.new_head import replace_layer

CONFIDENCE = "confidence"
"""Key under which a network may return the logit of its confidence, ``[N, 1]``."""

ROTATION = "rotation"
"""Key under which a network may return the logits of the four quarter turns, ``[N, 4]``."""

REJECT = "reject"
"""Key under which a network may return the logit of "none of the classes", ``[N, 1]``."""

NUMERATORS = "numerators"
"""Key under which a network may return what its logits are divided from, ``[N, C]``: the class-conditional part."""

OTHERS = "others"
"""Key under which a network may return, of each group of classes, the log-probability of none of them, ``[N, G]``."""

SECOND = "second"
"""Key under which a network may return the logits of a second classifier, ``[N, C]``."""

JOINT = "joint"
"""Key under which a network may return logits of class and quarter turn together, ``[N, 4 C]``, turn by turn."""

EMBEDDING = "embedding"
"""Key under which a network may return a unit vector that its prototypes are compared with."""

VARIANCE = "variance"
"""Key under which a network may return the variance of its logits, ``[N, 1]``: how far an image is from all known."""

PROJECTION = "projection"
"""Key under which a network may return the vector that contrastive learning compared, as long as it came out."""

TURNS = 4


class Branches(nn.Module):
    """Layers side by side in the place of a network's last one.

    The network then returns a dictionary: ``logits`` and an entry for each branch. What a detector needs of them it
    finds by name, at no extra pass.

    Parameters
    ----------
    main : the layer that gives the logits, as it was.
    branches : the others, by the name of their output.
    """

    def __init__(self, main: nn.Module, branches: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.main = main
        self.branches = nn.ModuleDict(dict(branches))

    def facts(self) -> dict[str, Any]:
        """The arguments that make the same."""
        return {"main": self.main, "branches": dict(self.branches.items())}

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        found = {name: branch(features) for name, branch in self.branches.items()}
        return {"logits": self.main(features), **found}


def with_branches(model: nn.Module, widths: Mapping[str, int]) -> nn.Module:
    """``model`` with a fresh linear layer for each of ``widths`` beside its last one, whose weights stay."""

    def beside(last: nn.Linear) -> nn.Module:
        return Branches(last, {name: nn.Linear(last.in_features, width) for name, width in widths.items()})

    return replace_layer(model, beside)
