"""Job: one evaluation as a configuration, and the road from it to a saved result."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from oodscope.api import evaluate
from oodscope.base.config import StrictModel, parse, read_yaml
from oodscope.base.errors import OodscopeError
from oodscope.base.files import cache_root
from oodscope.base.hashing import fingerprint
from oodscope.data import Benchmark, load_benchmark
from oodscope.detectors import Detector, create_detector
from oodscope.execution import Progress
from oodscope.models import Classifier, create_model
from oodscope.report import write_report
from oodscope.results import Result, ResultStore, Tuning
from oodscope.training import CrossEntropy, train


class ModelSpec(StrictModel):
    """Which network, and where its weights come from.

    Parameters
    ----------
    architecture : a small net (``oodscope list models``), ``timm:NAME`` or ``torchvision:NAME``.
    weights : a ``.safetensors`` file, or ``pretrained``.
    train : train it here on ``id_train`` instead, with this cross-entropy recipe.
    """

    architecture: str
    weights: str | None = None
    train: CrossEntropy | None = None


class Job(StrictModel):
    """One evaluation. Every key has the meaning of the option of ``oodscope evaluate`` with its name."""

    benchmark: str
    images_per_class: int | None = Field(default=None, gt=0)
    model: ModelSpec
    detectors: Literal["all"] | list[str | dict[str, dict[str, Any]]] = "all"
    protocols: list[str] = ["standard"]
    tune: Tuning = "default"
    skip_unreadable: bool = False
    batch_size: int = Field(default=256, gt=0)
    device: str = "auto"
    seed: int = 0
    output: str = "runs"


def read_job(path: Path) -> Job:
    """A job from YAML; paths in it are relative to the file."""
    job = parse(Job, read_yaml(path), str(path))
    if job.benchmark.endswith((".yaml", ".yml")):
        job = job.model_copy(update={"benchmark": str(path.parent / job.benchmark)})
    if job.model.weights not in (None, "pretrained"):
        model = job.model.model_copy(update={"weights": str(path.parent / str(job.model.weights))})
        job = job.model_copy(update={"model": model})
    return job


def execute(job: Job, progress: Progress) -> tuple[Result, Path]:
    """Run a job; the result and the folder it was saved to, report included."""
    # names first: a misspelt detector should not wait for a training
    detectors = _detectors(job)
    benchmark = load_benchmark(
        job.benchmark,
        images_per_class=job.images_per_class,
        skip_unreadable=job.skip_unreadable,
        progress=progress,
    )
    classifier, recipe = _classifier(job, benchmark, progress)
    result = evaluate(
        classifier,
        benchmark,
        detectors,
        job.protocols,
        tune=job.tune,
        batch_size=job.batch_size,
        seed=job.seed,
        recipe=recipe,
        progress=progress,
    )
    folder = result.save(Path(job.output) / result.record.id)
    write_report(result, folder / "report.html")
    ResultStore(Path(job.output) / "results.sqlite").add(result)
    return result, folder


def _detectors(job: Job) -> str | list[Detector]:
    if job.detectors == "all":
        return "all"
    chosen = []
    for entry in job.detectors:
        if isinstance(entry, str):
            chosen.append(create_detector(entry))
        else:
            chosen += [create_detector(name, **params) for name, params in entry.items()]
    return chosen


def _classifier(job: Job, benchmark: Benchmark, progress: Progress) -> tuple[Classifier, str]:
    spec = job.model
    if (spec.weights is None) == (spec.train is None):
        raise OodscopeError("a model needs either weights (a file, or 'pretrained') or a train section, not both")
    classes = len(benchmark.class_names)
    if spec.train is None:
        model, transform = create_model(spec.architecture, num_classes=classes, weights=spec.weights)
        return Classifier(model, transform, device=job.device, name=spec.architecture), ""
    if benchmark.id_train is None or benchmark.transform is None:
        raise OodscopeError(f"benchmark {benchmark.name!r} has no id_train and transform: nothing to train on")

    def build() -> Any:
        return create_model(spec.architecture, num_classes=classes)[0]

    build.__name__ = spec.architecture
    recipe = spec.train.describe()
    address = fingerprint(recipe, spec.architecture, benchmark.transform.key, benchmark.id_train.fingerprint)[:24]
    trained = train(
        build,
        spec.train,
        benchmark.id_train,
        benchmark.transform,
        folder=cache_root() / "training" / f"{spec.architecture}-{address}",
        device=job.device,
        progress=progress,
    )
    classifier = Classifier(trained.model, benchmark.transform, device=job.device, name=spec.architecture)
    return classifier, str(recipe["method"])
