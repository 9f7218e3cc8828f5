"""Judging a generated set from files: networks under test, networks that judge, the real sets beside it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import DataError, UsageError
from oodscope.base.hashing import fingerprint
from oodscope.data.benchmark import Benchmark
from oodscope.data.generated.files import open_generated
from oodscope.data.generated.record import read_generated
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import SILENT, Progress, announce
from oodscope.generation.sets.ensemble import build_member
from oodscope.generation.sets.making import MAKERS
from oodscope.jobs.model import ModelData, ModelSpec, build_classifier
from oodscope.metrics.generated.information import Window
from oodscope.models.classifier.checkpoint import load_weights
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.zoo.efficientnet_lite import JUDGE as LITE2
from oodscope.models.zoo.efficientnet_lite import efficientnet_lite, installed
from oodscope.runs.evaluation.evaluate import evaluate
from oodscope.runs.generated.checking import GeneratedChecks
from oodscope.runs.generated.estimate import estimate
from oodscope.runs.generated.judging import judge_generated
from oodscope.runs.generated.run import GeneratedStudy


@dataclass(frozen=True)
class JudgedSet:
    """What a study of one generated set is made from.

    Parameters
    ----------
    folder : of the set; the networks that chose it lie in its folder ``makers``.
    benchmark : real sets: ``near`` beside a near set, ``csid`` beside a shifted one.
    models : networks under test, as ``ARCHITECTURE=FILE`` or whatever ``--model`` of ``evaluate`` takes.
    judges : networks that judge the images, two or more, none of them a maker or under test.
    features : network in whose features closeness is judged: ``efficientnet-lite2``, which no loss has seen; empty for
        the first judge.
    """

    folder: Path
    benchmark: Benchmark
    models: Sequence[str]
    judges: Sequence[str]
    features: str = ""

    def study(
        self,
        detectors: Sequence[str],
        *,
        store: ActivationStore | None = None,
        device: str = "auto",
        seed: int = 0,
        progress: Progress = SILENT,
    ) -> GeneratedStudy:
        """Evaluate every network on the benchmark with the set in it, and judge the set."""
        record = read_generated(self.folder)
        wider = with_generated(self.benchmark, self.folder)
        name = self.folder.resolve().name
        tested = [_opened(each, self.benchmark, device, progress) for each in self.models]
        checks = GeneratedChecks(
            generated=(name,),
            judges=[_opened(each, self.benchmark, device, progress) for each in self.judges],
            makers=open_makers(self.folder, device),
            window=Window(*record.recipe["window"]) if record.kind == "near" and "window" in record.recipe else None,
            features=efficientnet_lite(self.features, device) if self.features else None,
        )
        _check_different(checks.judges, tested)
        store = store or ActivationStore()
        announce(progress, estimate(tested, wider, checks, store, seed))
        runs = [
            (each, evaluate(each, wider, list(detectors), store=store, seed=seed, progress=progress)) for each in tested
        ]
        return judge_generated(runs, wider, checks, store=store, seed=seed, progress=progress)


def _check_different(judges: Sequence[Classifier], tested: Sequence[Classifier]) -> None:
    """Refuse a judge that stands twice among them, or that is under test: it would agree with itself."""
    known = {each.fingerprint for each in judges}
    if len(known) < len(judges):
        raise UsageError("a network stands twice among the judges; an ensemble needs different ones")
    for each in tested:
        if each.fingerprint in known:
            raise UsageError(f"{each.name} judges the set and is under test; judge it by other networks")


def default_features() -> str:
    """The network that judges closeness, where its packages are installed."""
    return LITE2 if installed(LITE2) else ""


def with_generated(benchmark: Benchmark, folder: Path) -> Benchmark:
    """The benchmark with a generated set among its near-OOD or its covariate-shifted ID sets."""
    record, images = read_generated(folder), open_generated(folder)
    if record.kind == "attacked":
        raise DataError(f"{folder} holds outliers of an attack; evaluate on them with --near {folder}")
    role = "near" if record.kind == "near" else "csid"
    if role == "csid":
        images = images.in_classes(benchmark.class_names)
    version = fingerprint(benchmark.version, images.fingerprint)[:12]
    sets: dict[str, Any] = {role: (images, *getattr(benchmark, role))}
    return replace(benchmark, name=f"{benchmark.name} with {images.name}", version=version, ood_train=None, **sets)


def open_makers(folder: Path, device: str = "auto") -> list[Classifier]:
    """The networks that chose the images of a set, from its own folder; none where it holds none."""
    record, makers = read_generated(folder), []
    for path in sorted((folder / MAKERS).glob("*.safetensors")):
        frame = Preprocess.model_validate(record.recipe["frame"])
        try:
            with safe_open(path, framework="pt") as content:
                about = content.metadata() or {}
                tensors = {key: content.get_tensor(key) for key in content.keys()}  # noqa: SIM118  # not a dict
            network = build_member(about["architecture"], len(record.class_names), len(frame.mean))
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise DataError(f"{path}: not a network of a generated set ({error})") from error
        load_weights(network, tensors, str(path))
        makers.append(Classifier(network.eval(), frame, device=device, name=about.get("name", path.stem)))
    return makers


def _opened(text: str, benchmark: Benchmark, device: str, progress: Progress) -> Classifier:
    """A network from ``ARCHITECTURE=FILE``, or from one word."""
    architecture, sign, weights = text.partition("=")
    if sign and not weights:
        raise UsageError(f"{text!r}: name the weights after the sign, ARCHITECTURE=FILE")
    spec = ModelSpec(architecture=architecture, weights=weights or None).found_from(Path())
    classifier = build_classifier(spec, ModelData.of(benchmark), device=device, progress=progress).classifier
    named = classifier.with_default_transform(benchmark.transform)
    if weights:
        named.name = f"{architecture} {_short(Path(weights))}"
    return named


def _short(weights: Path) -> str:
    """What a file of weights is called in tables: of a trained network its folder, all their files have one name."""
    return weights.resolve().parent.name if weights.stem == "model" else weights.stem
