"""The tiers are what docs/testing.md says."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import settings

from tests.examples import COUNTS, TIER, examples, load_tier

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")


def soak_tests() -> set[str]:
    """Every test function with a case that is marked soak, as file::function."""
    found = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        if path == Path(__file__):
            continue
        source = path.read_text(encoding="utf-8")
        for marked in re.finditer(r"mark\.soak\b", source):
            function = re.search(r"def (test_\w+)", source[marked.end() :])
            found.add(f"{path.relative_to(ROOT)}::{function[1] if function else '?'}")
    return found


def test_every_test_of_the_soak_is_listed_with_its_shorter_form():
    rows = re.findall(r"^\| `(tests/\S+?::\w+)(?:\[.*?\])?` \| (.+) \|$", PAGE, re.MULTILINE)
    assert {name for name, _ in rows} == soak_tests() != set()
    for name, shorter in rows:
        source = (ROOT / name.partition("::")[0]).read_text(encoding="utf-8")
        named = re.match(r"`(?:(\w+)|\[(\w+)\])`: ", shorter)
        assert named, f"{name}: the row must begin with the shorter form"
        short = rf"def {named[1]}\(" if named[1] else rf"(?:\[|param\(){named[2]},"
        assert re.search(short, source), name


@pytest.fixture
def tier_of_this_run():
    yield
    load_tier(os.environ.get(TIER, "test"))


@pytest.mark.parametrize(("tier", "tried"), [("check", 30), ("test", 60), ("soak", 3000)])
def test_the_tier_decides_how_many_examples_are_tried(tier_of_this_run, tier, tried):
    load_tier(tier)
    assert settings.default.max_examples == COUNTS[tier]
    assert examples(60).max_examples == tried and examples(60).deadline is None
    assert examples(1).max_examples >= 1


def test_an_unknown_tier_is_refused(tier_of_this_run):
    with pytest.raises(ValueError, match=f"{TIER} is 'sok'; give one of check, test, soak"):
        load_tier("sok")


def test_a_deprecated_call_of_ours_is_an_error_and_one_of_a_library_is_not():
    source = "import warnings\nwarnings.warn('old', DeprecationWarning, stacklevel=1)"
    for module in ("oodscope", "oodscope.base.errors", "tests.results.test_telling"):
        with pytest.raises(DeprecationWarning):
            exec(source, {"__name__": module})
    for module in ("numpy.lib", "oodscope_of_others", "pytest"):
        exec(source, {"__name__": module})


def test_continuous_integration_runs_make_test():
    assert re.search(r"^exec make test$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
