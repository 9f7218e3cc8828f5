"""What the record of a run says of the network beyond its name and weights."""

from typing import Any

from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier


def network_record(classifier: Classifier) -> dict[str, Any]:
    """Preprocessing as settings, architecture, head, and what the weights are known to have seen."""
    transform = classifier.transform
    return {
        "preprocess": transform.model_dump(mode="json") if isinstance(transform, Preprocess) else None,
        "architecture": type(classifier.model).__name__,
        "head_path": classifier.head_path or "",
        "trained_on": [each.name if isinstance(each, ImageSet) else each for each in classifier.trained_on],
        "pretrained_on": list(classifier.pretrained_on),
    }
