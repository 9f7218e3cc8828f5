"""Data: image sets from anywhere, and benchmarks that give them roles."""

from oodscope.data.benchmark import Benchmark, Role
from oodscope.data.classlist import read_class_names
from oodscope.data.corruptions import corrupt, corrupt_batch
from oodscope.data.csvlist import open_csv
from oodscope.data.duplicates import Duplicates, find_duplicates
from oodscope.data.folds import DualFold, FoldPlan, dual_folds, fold_sets, hierarchical_choice, hierarchical_folds
from oodscope.data.generated import open_generated, write_generated
from oodscope.data.huggingface import open_hf
from oodscope.data.imageset import ImageSet
from oodscope.data.jigsaw import jigsaw
from oodscope.data.loading import load_benchmark
from oodscope.data.opening import open_folder, open_list, open_npz
from oodscope.data.own import own_benchmark
from oodscope.data.preprocess import Preprocess
from oodscope.data.splits import Test, Validation
from oodscope.data.webdataset import open_webdataset

__all__ = [
    "Benchmark",
    "DualFold",
    "Duplicates",
    "FoldPlan",
    "ImageSet",
    "Preprocess",
    "Role",
    "Test",
    "Validation",
    "corrupt",
    "corrupt_batch",
    "dual_folds",
    "find_duplicates",
    "fold_sets",
    "hierarchical_choice",
    "hierarchical_folds",
    "jigsaw",
    "load_benchmark",
    "open_csv",
    "open_folder",
    "open_generated",
    "open_hf",
    "open_list",
    "open_npz",
    "open_webdataset",
    "own_benchmark",
    "read_class_names",
    "write_generated",
]
