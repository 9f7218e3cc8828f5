"""Heads on frozen embeddings: what a fold costs when the backbone has already looked at every image."""

from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.heads.task import HeadTask
from oodscope.training.heads.trained import TrainedHead
from oodscope.training.heads.training import train_heads

__all__ = ["HeadRecipe", "HeadTask", "TrainedHead", "train_heads"]
