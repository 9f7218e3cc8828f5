"""Training a generator: recipe, loop, and what is written."""

from oodscope.generation.gan.grid import write_grid
from oodscope.generation.gan.recipe import GanRecipe
from oodscope.generation.gan.trained import TrainedGan, train_gan
from oodscope.generation.gan.variety import Variety, measure_variety

__all__ = ["GanRecipe", "TrainedGan", "Variety", "measure_variety", "train_gan", "write_grid"]
