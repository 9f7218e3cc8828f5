"""Generated sets: a plan, a pool of images, the choice among them by mutual information, and the files."""

from oodscope.generation.generated.making import MadeSet, make_set
from oodscope.generation.generated.plan import SetPlan
from oodscope.generation.generated.pool import Pool
from oodscope.generation.generated.remaking import plan_of, remake_set
from oodscope.generation.generated.selecting import Selected, select_near, select_shifted

__all__ = [
    "MadeSet",
    "Pool",
    "Selected",
    "SetPlan",
    "make_set",
    "plan_of",
    "remake_set",
    "select_near",
    "select_shifted",
]
