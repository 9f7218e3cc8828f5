"""Data: image sets from anywhere, and benchmarks that give them roles."""

from oodscope.data.benchmark import Benchmark, Role
from oodscope.data.corruptions import corrupt, corrupt_batch
from oodscope.data.duplicates import Duplicates, find_duplicates
from oodscope.data.imageset import ImageSet
from oodscope.data.jigsaw import jigsaw
from oodscope.data.loading import load_benchmark
from oodscope.data.opening import open_folder, open_list, open_npz
from oodscope.data.preprocess import Preprocess
from oodscope.data.splits import Test, Validation

__all__ = [
    "Benchmark",
    "Duplicates",
    "ImageSet",
    "Preprocess",
    "Role",
    "Test",
    "Validation",
    "corrupt",
    "corrupt_batch",
    "find_duplicates",
    "jigsaw",
    "load_benchmark",
    "open_folder",
    "open_list",
    "open_npz",
]
