"""The plugin as a second package, built as a wheel and installed by pip into a folder of its own."""

import base64
import hashlib
import os
import subprocess
import sys
from importlib import invalidate_caches
from pathlib import Path
from zipfile import ZipFile

import pytest

from oodscope.data.corruptions.catalog import CORRUPTIONS
from oodscope.data.images.sourcespec import SOURCES
from oodscope.data.packaged import BENCHMARKS
from oodscope.detectors.registry import DETECTORS
from oodscope.document.formats import FORMATS
from oodscope.generation.samplers.registry import SAMPLERS
from oodscope.generation.variations.registry import VARIATIONS
from oodscope.metrics.catalog import METRICS
from oodscope.models.zoo.zoo import LIBRARIES
from oodscope.protocols.registry import PROTOCOLS
from oodscope.report.paper.figure import FIGURES
from oodscope.results.run import RUNS
from oodscope.training.registry import RECIPES
from tests.cli.conftest import oodscope  # noqa: F401  (the command line)

REGISTRIES = (
    DETECTORS, PROTOCOLS, METRICS, BENCHMARKS, SOURCES, CORRUPTIONS, LIBRARIES, VARIATIONS, SAMPLERS, FIGURES, FORMATS,
    RECIPES, RUNS,
)  # fmt: skip
PLUGIN = Path(__file__).parent / "plugin"
_INFO = "oodscope_plugin-1.0.dist-info"


def _wheel(folder: Path) -> Path:
    """A wheel of the plugin: a package and its entry points are all that one needs."""
    files = {f"{each.relative_to(PLUGIN)}": each.read_bytes() for each in (PLUGIN / "oodscope_plugin").glob("*.[py]*")}
    files[f"{_INFO}/METADATA"] = b"Metadata-Version: 2.1\nName: oodscope-plugin\nVersion: 1.0\n"
    files[f"{_INFO}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{_INFO}/entry_points.txt"] = (PLUGIN / "entry_points.txt").read_bytes()
    rows = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in files.items()]
    files[f"{_INFO}/RECORD"] = "\n".join([*rows, f"{_INFO}/RECORD,,", ""]).encode()
    path = folder / "oodscope_plugin-1.0-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


@pytest.fixture(scope="session")
def site_packages(tmp_path_factory) -> Path:
    """Where the plugin is installed."""
    folder = tmp_path_factory.mktemp("plugin")
    target = folder / "site-packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    pip += ["--disable-pip-version-check", "--target", str(target), str(_wheel(folder))]
    subprocess.run(pip, check=True, env={**os.environ, "PYTHONPATH": ""})
    return target


@pytest.fixture(autouse=True)
def plugin(site_packages, monkeypatch):
    """The plugin is installed for the time of one test, in this process and in those that it starts."""
    monkeypatch.syspath_prepend(str(site_packages))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site_packages), os.environ.get("PYTHONPATH", "")]))
    invalidate_caches()


@pytest.fixture(autouse=True)
def registrations(monkeypatch):
    """What a test registers is forgotten after it."""
    for each in REGISTRIES:
        monkeypatch.setattr(each, "_registered", dict(each._registered))
