"""Write the committed catalogue from the classes: ``python -m oodscope.cli.catalog``."""

import inspect
import json
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, TypeVar

import oodscope.detectors.methods
import oodscope.detectors.streams
import oodscope.generation.samplers
import oodscope.generation.variations
import oodscope.protocols
import oodscope.runs
import oodscope.training.methods
from oodscope.base.config import read_yaml
from oodscope.base.files import write_text
from oodscope.base.paper import Paper
from oodscope.cli.choices import TRACK_SUMMARIES
from oodscope.data.corruptions.catalog import CORRUPTIONS
from oodscope.data.manifest import OWN_SOURCES, Manifest
from oodscope.detectors.base import Detector
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.rectifier import Rectifier
from oodscope.detectors.streaming import StreamDetector
from oodscope.document.formats import FORMATS
from oodscope.document.wording import TRACKS
from oodscope.generation.samplers.base import Sampler
from oodscope.generation.variations.base import Variation
from oodscope.metrics.catalog import METRICS
from oodscope.models.zoo.zoo import MODELS
from oodscope.protocols.base import Protocol
from oodscope.report.paper.figure import FIGURES
from oodscope.results.run import Run
from oodscope.training.recipe import Recipe

T = TypeVar("T")

_ROOT = Path(oodscope.__file__).parent


def build_catalog() -> dict[str, dict[str, dict[str, Any]]]:
    """Everything in the package that has a name, described by itself."""
    return {
        "detectors": _detectors(),
        "stream_detectors": _stream_detectors(),
        "protocols": _protocols(),
        "runs": _runs(),
        "metrics": _metrics(),
        "benchmarks": _benchmarks(),
        "models": _models(),
        "recipes": _recipes(),
        "tracks": _tracks(),
        "corruptions": _corruptions(),
        "variations": _variations(),
        "samplers": _samplers(),
        "sources": _sources(),
        "figures": _figures(),
        "formats": _formats(),
    }


def _detectors() -> dict[str, dict[str, Any]]:
    return {cls.name: _detector(cls) for cls in _named(oodscope.detectors.methods, Detector)}  # type: ignore[type-abstract]


def _stream_detectors() -> dict[str, dict[str, Any]]:
    found = _named(oodscope.detectors.streams, StreamDetector)  # type: ignore[type-abstract]
    return {cls.name: {**_detector(cls), "kind": "stream detector"} for cls in found}


def _protocols() -> dict[str, dict[str, Any]]:
    packages = (oodscope.protocols, oodscope.runs)
    classes = [cls for package in packages for cls in _named(package, Protocol)]  # type: ignore[type-abstract]
    return {
        cls.name: {
            "title": cls.title,
            "summary": cls.summary,
            **_published(cls.paper),
            "version": cls.version,
            "headline": list(cls.headline),
            "needs": list(cls.roles),
            "target": f"{cls.__module__}:{cls.__name__}",
        }
        for cls in sorted(classes, key=lambda cls: cls.position)
    }


def _runs() -> dict[str, dict[str, Any]]:
    return {
        cls.kind: {
            "summary": (inspect.getdoc(cls) or "").partition("\n")[0],
            "target": f"{cls.__module__}:{cls.__name__}",
        }
        for cls in _named(oodscope.runs, Run, "kind")  # type: ignore[type-abstract]
    }


def _metrics() -> dict[str, dict[str, Any]]:
    return {
        name: {
            "label": metric.label,
            "better": "higher" if metric.higher_is_better else "lower",
            "unit": metric.unit,
            "summary": metric.description,
        }
        for name, metric in METRICS.own.items()
    }


def _named(package: ModuleType, base: type[T], attribute: str = "name") -> list[type[T]]:
    """The classes of a package that derive from ``base`` and have a name of their own, by name."""
    found = {}
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        for cls in vars(import_module(module.name)).values():
            own = inspect.isclass(cls) and cls.__module__ == module.name
            if own and issubclass(cls, base) and isinstance(vars(cls).get(attribute), str) and vars(cls)[attribute]:
                found[vars(cls)[attribute]] = cls
    return [cls for _, cls in sorted(found.items())]


def _detector(cls: type[Detector]) -> dict[str, Any]:
    kind = "logit score" if issubclass(cls, LogitScore) else "rectifier" if issubclass(cls, Rectifier) else "detector"
    made = cls()
    return {
        "kind": kind,
        "cost": str(cls.cost),
        "needs": [flag.name.lower() for flag in cls.needs if flag.name],
        "signed_features_ok": cls.signed_features_ok,
        "unverified_form": cls.unverified_form,
        "parameters": made.get_params(deep=False),
        **({"networks": list(made.networks)} if made.networks else {}),
        "grid": {key: list(values) for key, values in cls.grid.items()},
        **_published(cls.paper),
        "target": f"{cls.__module__}:{cls.__name__}",
    }


def _published(paper: Paper | None) -> dict[str, str]:
    """Where something comes from; an own protocol or benchmark comes from nowhere."""
    if paper is None:
        return {"paper": "", "paper_title": ""}
    return {"paper": f"{paper.authors}, {paper.venue}", "paper_title": paper.title}


def _variations() -> dict[str, dict[str, Any]]:
    return {
        cls.name: {
            "summary": _first_line(cls),
            "varies_images": cls.conditional,
            "differentiable": cls.differentiable,
            "target": f"{cls.__module__}:{cls.__name__}",
        }
        for cls in _named(oodscope.generation.variations, Variation)  # type: ignore[type-abstract]
    }


def _samplers() -> dict[str, dict[str, Any]]:
    return {
        cls.name: {
            "summary": _first_line(cls),
            "gradient": cls.gradient,
            "target": f"{cls.__module__}:{cls.__name__}",
        }
        for cls in _named(oodscope.generation.samplers, Sampler)  # type: ignore[type-abstract]
    }


def _sources() -> dict[str, dict[str, Any]]:
    return {name: {"summary": _first_line(cls)} for name, cls in OWN_SOURCES.items()}


def _formats() -> dict[str, dict[str, Any]]:
    return {name: {"ending": each.ending, "summary": each.summary} for name, each in FORMATS.own.items()}


def _first_line(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def _benchmarks() -> dict[str, dict[str, Any]]:
    found = {}
    for path in sorted((_ROOT / "data" / "benchmarks").glob("*.yaml")):
        manifest = Manifest.model_validate(read_yaml(path))
        sets = {role: list(getattr(manifest.sets, role)) for role in ("near", "far", "csid")}
        published = _published(Paper.parse(manifest.paper) if manifest.paper else None)
        found[path.stem] = {"version": manifest.version, "summary": manifest.description, **published, **sets}
    return found


def _models() -> dict[str, dict[str, Any]]:
    return {
        name: {"summary": info.summary, "input_size": info.input_size, "target": info.target}
        for name, info in MODELS.items()
    }


def _recipes() -> dict[str, dict[str, Any]]:
    return {cls.name: _recipe(cls) for cls in _named(oodscope.training.methods, Recipe)}  # type: ignore[type-abstract]


def _recipe(cls: type[Recipe]) -> dict[str, Any]:
    settings = cls().model_dump(mode="json")
    measured = json.loads((_ROOT / "training" / "minutes.json").read_text(encoding="utf-8"))
    return {
        "summary": (inspect.getdoc(cls) or "").partition("\n")[0],
        **_published(cls.paper),
        "cost": cls.cost,
        "extra_data": "outliers" if settings["ood_batch_size"] else "",
        "detectors": list(cls.detectors),
        "gpu_minutes": measured["minutes"].get(cls.name),
        "parameters": settings,
        "target": f"{cls.__module__}:{cls.__name__}",
    }


def _tracks() -> dict[str, dict[str, Any]]:
    tuning = {str(name): {"of": "tuning", "summary": words} for name, words in TRACKS.items()}
    return {**tuning, **{name: {"of": "leaderboard", "summary": words} for name, words in TRACK_SUMMARIES.items()}}


def _corruptions() -> dict[str, dict[str, Any]]:
    columns = ("family", "group", "comparable", "differentiable", "continuous", "summary", "target")
    return {name: {column: getattr(info, column) for column in columns} for name, info in CORRUPTIONS.own.items()}


def _figures() -> dict[str, dict[str, Any]]:
    return {
        name: {"paper": each.paper, "number": each.number, "needs": each.needs}
        for name, each in sorted(FIGURES.own.items())
    }


def main() -> None:
    """Write ``catalog.json``."""
    write_text(_ROOT / "catalog.json", json.dumps(build_catalog(), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
