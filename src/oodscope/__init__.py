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
    from oodscope.base.errors import OodscopeError as OodscopeError
    from oodscope.data.benchmark import Benchmark as Benchmark
    from oodscope.data.corruptions.sets import corrupt as corrupt
    from oodscope.data.imageset import ImageSet as ImageSet
    from oodscope.data.loading import load_benchmark as load_benchmark
    from oodscope.data.own import own_benchmark as own_benchmark
    from oodscope.data.preprocess import Preprocess as Preprocess
    from oodscope.deploy.artefact import load as load
    from oodscope.deploy.fit import fit_scorer as fit_scorer
    from oodscope.deploy.onnx import export_onnx as export_onnx
    from oodscope.detectors.base import Detector as Detector
    from oodscope.detectors.base import Needs as Needs
    from oodscope.detectors.logitscore import LogitScore as LogitScore
    from oodscope.detectors.rectifier import Rectifier as Rectifier
    from oodscope.detectors.registry import create_detector as create_detector
    from oodscope.generation.sets.making import make_set as make_set
    from oodscope.generation.sets.plan import SetPlan as SetPlan
    from oodscope.jobs.run import run as run
    from oodscope.metrics.metric import Metric as Metric
    from oodscope.models.classifier.classifier import Classifier as Classifier
    from oodscope.models.zoo.zoo import create_model as create_model
    from oodscope.protocols.base import Protocol as Protocol
    from oodscope.report.page.page import write_report as write_report
    from oodscope.results.opening import open_runs as open_runs
    from oodscope.results.run import Run as Run
    from oodscope.runs.attack.attack import attack as attack
    from oodscope.runs.audit.audit import audit as audit
    from oodscope.runs.comparison.compare import compare as compare
    from oodscope.runs.crossval.engine import cross_validate as cross_validate
    from oodscope.runs.evaluation.activations import evaluate_activations as evaluate_activations
    from oodscope.runs.evaluation.evaluate import evaluate as evaluate
    from oodscope.runs.evaluation.run import Result as Result
    from oodscope.runs.evaluation.scores import evaluate_scores as evaluate_scores
    from oodscope.runs.generated.judging import judge_generated as judge_generated
    from oodscope.training.recipe import Recipe as Recipe
    from oodscope.training.registry import create_recipe as create_recipe
    from oodscope.training.train import train as train

_HOMES = {
    "ActivationStore": "activations.store.store",
    "Activations": "activations.activations",
    "Benchmark": "data.benchmark",
    "Classifier": "models.classifier.classifier",
    "Detector": "detectors.base",
    "ImageSet": "data.imageset",
    "LogitScore": "detectors.logitscore",
    "Metric": "metrics.metric",
    "Needs": "detectors.base",
    "OodscopeError": "base.errors",
    "Preprocess": "data.preprocess",
    "Protocol": "protocols.base",
    "Recipe": "training.recipe",
    "Rectifier": "detectors.rectifier",
    "Result": "runs.evaluation.run",
    "Run": "results.run",
    "SetPlan": "generation.sets.plan",
    "attack": "runs.attack.attack",
    "audit": "runs.audit.audit",
    "compare": "runs.comparison.compare",
    "corrupt": "data.corruptions.sets",
    "create_detector": "detectors.registry",
    "create_model": "models.zoo.zoo",
    "create_recipe": "training.registry",
    "cross_validate": "runs.crossval.engine",
    "evaluate": "runs.evaluation.evaluate",
    "evaluate_activations": "runs.evaluation.activations",
    "evaluate_scores": "runs.evaluation.scores",
    "export_onnx": "deploy.onnx",
    "fit_scorer": "deploy.fit",
    "judge_generated": "runs.generated.judging",
    "load": "deploy.artefact",
    "load_benchmark": "data.loading",
    "make_set": "generation.sets.making",
    "open_runs": "results.opening",
    "own_benchmark": "data.own",
    "run": "jobs.run",
    "train": "training.train",
    "write_report": "report.page.page",
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
