"""What we depend on: no version with known holes, a tested set that fits, the vendored script as published."""

import tomllib
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.sbom import LOCK, read_lock, sbom

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
    "pillow": "12.1.1",
    "filelock": "3.20.2",
    "jinja2": "3.1.5",
    "onnx": "1.20.1",
    "playwright": "1.55.0",
    "pyarrow": "23.0.0",
    "pytest": "9.0.2",
    "python-multipart": "0.0.25",
    "scikit-learn": "1.4.2",
    "transformers": "4.57.6",
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


def test_everything_that_may_be_installed_is_locked_by_digest_and_without_addresses():
    text = LOCK.read_text()
    locked = {each.name: each for each in read_lock()}
    assert all(each.digests for each in locked.values())
    assert "://" not in text and "--index-url" not in text and "--find-links" not in text
    assert {canonicalize_name(each.name) for each in WANTED} <= set(locked)
    for wanted in WANTED:
        assert locked[canonicalize_name(wanted.name)].version in wanted.specifier
    for name, version in TESTED.items():
        assert locked[name].version == version


def test_the_parts_list_names_every_locked_package_and_the_vendored_script():
    listed = sbom()
    parts = {each["bom-ref"]: each for each in listed["components"]}
    assert len(parts) == len(listed["components"]) == len(read_lock()) + 1
    assert {each.purl for each in read_lock()} < set(parts)
    script = parts[f"pkg:npm/plotly.js-cartesian-dist-min@{bundle.VERSION}"]
    assert script["hashes"] == [{"alg": "SHA-256", "content": bundle.SHA256}] and script["scope"] == "required"
    scope = {each["name"]: each["scope"] for each in parts.values()}
    assert (scope["torch"], scope["starlette"], scope["psycopg-binary"]) == ("required", "optional", "optional")
    assert scope["pytest"] == "excluded"
    assert all(set(each["dependsOn"]) <= set(parts) for each in listed["dependencies"])
    assert sbom() == listed, "there is no date in it"


def test_the_vendored_script_is_the_published_one_with_its_licence():
    content = (files("oodscope.report") / "vendor" / "plotly-cartesian.min.js").read_bytes()
    assert sha256(content).hexdigest() == bundle.SHA256
    assert f"v{bundle.VERSION}".encode() in content[:400]
    assert "MIT" in bundle.licence()
