"""Classifiers: any network with its preprocessing, its head and an identity; and a zoo to make them from."""

from oodscope.models.backbones import create_backbone
from oodscope.models.classifier import Classifier
from oodscope.models.ensemble import Ensemble
from oodscope.models.head import Head
from oodscope.models.network import Outputs
from oodscope.models.new_head import replace_head
from oodscope.models.texthead import TextHead
from oodscope.models.zoo import create_model

__all__ = [
    "Classifier",
    "Ensemble",
    "Head",
    "Outputs",
    "TextHead",
    "create_backbone",
    "create_model",
    "replace_head",
]
