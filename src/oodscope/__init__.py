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
    from oodscope.activations.activations import Activations as Activations
    from oodscope.activations.store.store import ActivationStore as ActivationStore
    from oodscope.api import evaluate as evaluate
    from oodscope.base.errors import OodscopeError as OodscopeError
    from oodscope.data.benchmark import Benchmark as Benchmark
    from oodscope.data.corruptions.batch import corrupt_batch as corrupt_batch
    from oodscope.data.corruptions.sets import corrupt as corrupt
    from oodscope.data.folds.sets import FoldPlan as FoldPlan
    from oodscope.data.folds.sets import fold_sets as fold_sets
    from oodscope.data.folds.splitters import DualKFold as DualKFold
    from oodscope.data.folds.splitters import HierarchicalKFold as HierarchicalKFold
    from oodscope.data.imageset import ImageSet as ImageSet
    from oodscope.data.loading import load_benchmark as load_benchmark
    from oodscope.data.own import own_benchmark as own_benchmark
    from oodscope.data.preprocess import Preprocess as Preprocess
    from oodscope.deploy.artefact import load as load
    from oodscope.deploy.fit import fit_scorer as fit_scorer
    from oodscope.deploy.function_scorer import FunctionScorer as FunctionScorer
    from oodscope.deploy.scorer import Scorer as Scorer
    from oodscope.detectors.base import Detector as Detector
    from oodscope.detectors.registry import create_detector as create_detector
    from oodscope.detectors.saving import load_detector as load_detector
    from oodscope.execution.console import ConsoleProgress as ConsoleProgress
    from oodscope.models.classifier.classifier import Classifier as Classifier
    from oodscope.models.zoo.zoo import create_model as create_model
    from oodscope.protocols.adversarial.attacking import attack as attack
    from oodscope.protocols.audit import audit as audit
    from oodscope.protocols.comparing import compare as compare
    from oodscope.protocols.crossval.engine import cross_validate as cross_validate
    from oodscope.protocols.crossval.frozen import FrozenEmbeddings as FrozenEmbeddings
    from oodscope.protocols.crossval.networks import FineTuning as FineTuning
    from oodscope.protocols.crossval.networks import FullTraining as FullTraining
    from oodscope.protocols.crossval.pair import Pair as Pair
    from oodscope.protocols.crossval.plan import CrossValidationPlan as CrossValidationPlan
    from oodscope.protocols.generated.checking import GeneratedChecks as GeneratedChecks
    from oodscope.protocols.generated.judging import judge_generated as judge_generated
    from oodscope.protocols.human_options import HumanCentric as HumanCentric
    from oodscope.protocols.scoring import fit_scorers as fit_scorers
    from oodscope.report.attack import write_attack as write_attack
    from oodscope.report.audit import write_audit as write_audit
    from oodscope.report.generated import write_generated_study as write_generated_study
    from oodscope.report.page import write_report as write_report
    from oodscope.results.result import Result as Result
    from oodscope.results.scoretable import ScoreTable as ScoreTable
    from oodscope.results.seeds import over_seeds as over_seeds
    from oodscope.results.store import ResultStore as ResultStore
    from oodscope.training.methods.cross_entropy import CrossEntropy as CrossEntropy
    from oodscope.training.methods.fine_tune import FineTune as FineTune
    from oodscope.training.methods.outlier_exposure import OutlierExposure as OutlierExposure
    from oodscope.training.train import train as train

_HOMES = {
    "ActivationStore": "activations.store.store",
    "Activations": "activations.activations",
    "Benchmark": "data.benchmark",
    "Classifier": "models.classifier.classifier",
    "ConsoleProgress": "execution.console",
    "CrossEntropy": "training.methods.cross_entropy",
    "CrossValidationPlan": "protocols.crossval.plan",
    "Detector": "detectors.base",
    "DualKFold": "data.folds.splitters",
    "FineTune": "training.methods.fine_tune",
    "FineTuning": "protocols.crossval.networks",
    "FoldPlan": "data.folds.sets",
    "FrozenEmbeddings": "protocols.crossval.frozen",
    "FullTraining": "protocols.crossval.networks",
    "FunctionScorer": "deploy.function_scorer",
    "GeneratedChecks": "protocols.generated.checking",
    "HierarchicalKFold": "data.folds.splitters",
    "HumanCentric": "protocols.human_options",
    "ImageSet": "data.imageset",
    "OodscopeError": "base.errors",
    "OutlierExposure": "training.methods.outlier_exposure",
    "Pair": "protocols.crossval.pair",
    "Preprocess": "data.preprocess",
    "Result": "results.result",
    "ResultStore": "results.store",
    "ScoreTable": "results.scoretable",
    "Scorer": "deploy.scorer",
    "attack": "protocols.adversarial.attacking",
    "audit": "protocols.audit",
    "compare": "protocols.comparing",
    "corrupt": "data.corruptions.sets",
    "corrupt_batch": "data.corruptions.batch",
    "create_detector": "detectors.registry",
    "create_model": "models.zoo.zoo",
    "cross_validate": "protocols.crossval.engine",
    "evaluate": "api",
    "fit_scorer": "deploy.fit",
    "fold_sets": "data.folds.sets",
    "fit_scorers": "protocols.scoring",
    "judge_generated": "protocols.generated.judging",
    "load": "deploy.artefact",
    "load_benchmark": "data.loading",
    "load_detector": "detectors.saving",
    "over_seeds": "results.seeds",
    "own_benchmark": "data.own",
    "train": "training.train",
    "write_attack": "report.attack",
    "write_audit": "report.audit",
    "write_generated_study": "report.generated",
    "write_report": "report.page",
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
