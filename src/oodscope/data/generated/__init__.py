"""Generated sets on disk: images, and the recipe that they came from and must agree with."""

from oodscope.data.generated.opening import is_generated, open_generated
from oodscope.data.generated.record import RECIPE, GeneratedRecord, read_generated
from oodscope.data.generated.writing import check_free, write_generated

__all__ = [
    "RECIPE",
    "GeneratedRecord",
    "check_free",
    "is_generated",
    "open_generated",
    "read_generated",
    "write_generated",
]
