"""Capabilities of a classifier: what a detector may require of it."""

from collections.abc import Sequence
from dataclasses import replace

from oodscope.activations.probes.bounds import has_bounds
from oodscope.activations.probes.dropped import dropout_layers
from oodscope.activations.probes.local import has_patches
from oodscope.base.errors import ModelError
from oodscope.detectors.base import Capabilities, Detector, Needs
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.pixels import pixel_scale

_INSIDE = Needs.MAPS | Needs.MEMBERS | Needs.NEGATIVES | Needs.PATCHES | Needs.OUTPUTS | Needs.DROPOUT | Needs.BOUNDS


def capabilities_of(
    detectors: Sequence[Detector], classifier: Classifier, *, train: bool, held_out: bool
) -> Capabilities:
    """What these detectors may ask for.

    Inspecting a network costs two passes over noise, so that is done only if one of them wants to know.

    Parameters
    ----------
    train, held_out : whether there are training images, and others that the network was not trained on.
    """
    capabilities = Capabilities(
        head=classifier.head is not None,
        train=train,
        held_out=held_out,
        logits=not classifier.embedding,
        features=classifier.has_features or classifier.embedding,
    )
    if any(each.needs & _INSIDE or not each.signed_features_ok for each in detectors):
        anatomy = classifier.anatomy
        capabilities = replace(
            capabilities,
            signed=classifier.embedding or anatomy.signed_features,
            stages=len(anatomy.stages),
            members=anatomy.members,
            negatives=anatomy.negatives,
            patches=has_patches(classifier.model),
            outputs=anatomy.outputs,
            bounded=has_bounds(classifier.model),
            dropouts=len(dropout_layers(classifier.model)),
        )
    # logits that a linear head makes have a scale: only those of a network without one may be normalised
    if not (classifier.head or classifier.embedding or all(each.log_probabilities_ok for each in detectors)):
        capabilities = replace(capabilities, log_probabilities=classifier.anatomy.log_probabilities)
    if any(each.needs & (Needs.IMAGES | Needs.COPIES) for each in detectors):
        capabilities = replace(capabilities, image_shape=_image_shape(classifier))
    return capabilities


def _image_shape(classifier: Classifier) -> tuple[int, ...] | None:
    """What the classifier sees of an image; None before it has a transform."""
    if classifier.transform is None:
        return None
    try:
        pixels = pixel_scale(classifier)
    except ModelError:
        return ()
    return (len(pixels.scale), *pixels.size)
