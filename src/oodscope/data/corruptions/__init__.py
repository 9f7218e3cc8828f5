"""Corruptions: covariate shift on demand, after Hendrycks & Dietterich (ICLR 2019), on any device."""

from oodscope.data.corruptions.batch import corrupt_batch
from oodscope.data.corruptions.catalog import CORRUPTIONS, Corruption
from oodscope.data.corruptions.sets import corrupt

__all__ = ["CORRUPTIONS", "Corruption", "corrupt", "corrupt_batch"]
