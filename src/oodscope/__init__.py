"""oodscope: judge out-of-distribution detectors.

Which detector to trust, how far, and where it breaks, for any image classifier::

    import oodscope as oods

    bench = oods.load_benchmark("glyphs")
    clf = oods.Classifier(model, transform=bench.transform)
    result = oods.evaluate(clf, bench, detectors=["msp", "knn", "vim"])
    print(result.table())
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from oodscope.activations import Activations as Activations
    from oodscope.activations import ActivationStore as ActivationStore
    from oodscope.api import audit as audit
    from oodscope.api import evaluate as evaluate
    from oodscope.base.errors import OodscopeError as OodscopeError
    from oodscope.data import Benchmark as Benchmark
    from oodscope.data import FoldPlan as FoldPlan
    from oodscope.data import ImageSet as ImageSet
    from oodscope.data import Preprocess as Preprocess
    from oodscope.data import corrupt as corrupt
    from oodscope.data import corrupt_batch as corrupt_batch
    from oodscope.data import fold_sets as fold_sets
    from oodscope.data import load_benchmark as load_benchmark
    from oodscope.data import own_benchmark as own_benchmark
    from oodscope.data.folds import DualKFold as DualKFold
    from oodscope.data.folds import HierarchicalKFold as HierarchicalKFold
    from oodscope.detectors import Detector as Detector
    from oodscope.detectors import FunctionScorer as FunctionScorer
    from oodscope.detectors import Scorer as Scorer
    from oodscope.detectors import create_detector as create_detector
    from oodscope.detectors import fit_scorer as fit_scorer
    from oodscope.detectors import load as load
    from oodscope.detectors import load_detector as load_detector
    from oodscope.execution.console import ConsoleProgress as ConsoleProgress
    from oodscope.models import Classifier as Classifier
    from oodscope.models import create_model as create_model
    from oodscope.protocols import HumanCentric as HumanCentric
    from oodscope.protocols import attack as attack
    from oodscope.protocols import compare as compare
    from oodscope.protocols import fit_scorers as fit_scorers
    from oodscope.protocols.crossval import CrossValidationPlan as CrossValidationPlan
    from oodscope.protocols.crossval import FineTuning as FineTuning
    from oodscope.protocols.crossval import FrozenEmbeddings as FrozenEmbeddings
    from oodscope.protocols.crossval import FullTraining as FullTraining
    from oodscope.protocols.crossval import Pair as Pair
    from oodscope.protocols.crossval import cross_validate as cross_validate
    from oodscope.protocols.generated import GeneratedChecks as GeneratedChecks
    from oodscope.protocols.generated import judge_generated as judge_generated
    from oodscope.report import write_attack as write_attack
    from oodscope.report import write_audit as write_audit
    from oodscope.report import write_generated_study as write_generated_study
    from oodscope.report import write_report as write_report
    from oodscope.results import Result as Result
    from oodscope.results import ResultStore as ResultStore
    from oodscope.results import ScoreTable as ScoreTable
    from oodscope.results import over_seeds as over_seeds
    from oodscope.training import CrossEntropy as CrossEntropy
    from oodscope.training import FineTune as FineTune
    from oodscope.training import OutlierExposure as OutlierExposure
    from oodscope.training import train as train

_HOMES = {
    "ActivationStore": "activations",
    "Activations": "activations",
    "Benchmark": "data",
    "Classifier": "models",
    "ConsoleProgress": "execution.console",
    "CrossEntropy": "training",
    "CrossValidationPlan": "protocols.crossval",
    "Detector": "detectors",
    "DualKFold": "data.folds",
    "FineTune": "training",
    "FineTuning": "protocols.crossval",
    "FoldPlan": "data",
    "FrozenEmbeddings": "protocols.crossval",
    "FullTraining": "protocols.crossval",
    "FunctionScorer": "detectors",
    "GeneratedChecks": "protocols.generated",
    "HierarchicalKFold": "data.folds",
    "HumanCentric": "protocols",
    "ImageSet": "data",
    "OodscopeError": "base.errors",
    "OutlierExposure": "training",
    "Pair": "protocols.crossval",
    "Preprocess": "data",
    "Result": "results",
    "ResultStore": "results",
    "ScoreTable": "results",
    "Scorer": "detectors",
    "attack": "protocols",
    "audit": "api",
    "compare": "protocols",
    "corrupt": "data",
    "corrupt_batch": "data",
    "create_detector": "detectors",
    "create_model": "models",
    "cross_validate": "protocols.crossval",
    "evaluate": "api",
    "fit_scorer": "detectors",
    "fold_sets": "data",
    "fit_scorers": "protocols",
    "judge_generated": "protocols.generated",
    "load": "detectors",
    "load_benchmark": "data",
    "load_detector": "detectors",
    "over_seeds": "results",
    "own_benchmark": "data",
    "train": "training",
    "write_attack": "report",
    "write_audit": "report",
    "write_generated_study": "report",
    "write_report": "report",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    # torch takes seconds to import; `oodscope --help` must not wait for it
    if name not in _HOMES:
        raise AttributeError(f"module 'oodscope' has no attribute {name!r}")
    value = getattr(import_module(f"oodscope.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
