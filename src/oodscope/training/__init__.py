"""Training: a network, a recipe and labelled images in; the trained network out, exactly resumable."""

from oodscope.training.augment import Augment
from oodscope.training.batch import Batch
from oodscope.training.cross_entropy import CrossEntropy
from oodscope.training.fine_tune import FineTune
from oodscope.training.heads import HeadRecipe, HeadTask, TrainedHead, train_heads
from oodscope.training.history import Epoch
from oodscope.training.linear_probe import LinearProbe
from oodscope.training.outlier_exposure import OutlierExposure
from oodscope.training.recipe import Recipe, Step
from oodscope.training.streams import Streams
from oodscope.training.trained import Trained, train

__all__ = [
    "Augment",
    "Batch",
    "CrossEntropy",
    "Epoch",
    "FineTune",
    "HeadRecipe",
    "HeadTask",
    "LinearProbe",
    "OutlierExposure",
    "Recipe",
    "Step",
    "Streams",
    "Trained",
    "TrainedHead",
    "train",
    "train_heads",
]
