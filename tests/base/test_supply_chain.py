"""What we depend on: no version with known holes, a tested set that fits, the vendored script as published."""

import tomllib
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from oodscope.report.render import bundle

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GROUPS = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
WANTED = [Requirement(line) for group in GROUPS for line in group if not line.startswith("oodscope[")]
TESTED = {
    canonicalize_name(name): version
    for name, _, version in (
        line.partition("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    )
}
HOLES = {
    "starlette": "1.3.0",
    "torch": "2.9.1",
    "pillow": "12.1.0",
    "filelock": "3.20.2",
    "jinja2": "3.1.5",
    "python-multipart": "0.0.21",
}
"""The last version of each that must not be installed."""


@pytest.mark.parametrize("wanted", WANTED, ids=lambda each: each.name)
def test_the_tested_version_is_allowed(wanted):
    if (version := TESTED.get(canonicalize_name(wanted.name))) is not None:
        assert version in wanted.specifier


@pytest.mark.parametrize("name", HOLES)
def test_versions_with_known_holes_are_not(name):
    (wanted,) = {each for each in WANTED if each.name == name}
    assert HOLES[name] not in wanted.specifier


def test_a_server_library_whose_internals_we_subclass_is_capped():
    (wanted,) = [each for each in WANTED if each.name == "uvicorn"]
    assert any(each.operator == "<" for each in wanted.specifier)


def test_the_vendored_script_is_the_published_one_with_its_licence():
    content = (files("oodscope.report") / "vendor" / "plotly-cartesian.min.js").read_bytes()
    assert sha256(content).hexdigest() == bundle.SHA256
    assert f"v{bundle.VERSION}".encode() in content[:400]
    assert "MIT" in bundle.licence()
