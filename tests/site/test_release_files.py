"""Files beside the code: versions agree, workflows and forms are well-formed."""

import re
from pathlib import Path

import pytest
import yaml

import oodscope

ROOT = Path(__file__).parent.parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_one_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == oodscope.__version__ and cited["license"] == "Apache-2.0"
    assert re.search(rf"^## .*{re.escape(oodscope.__version__)}", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_least_rights_and_an_end(path):
    flow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert flow["permissions"] == {"contents": "read"}
    for job in flow["jobs"].values():
        assert job["steps"] and (job.get("timeout-minutes") or job.get("environment"))


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda p: p.name)
def test_a_form_asks_something(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert form["name"] and form["description"]
    assert all(field["attributes"]["label"] for field in form["body"])


def test_hooks_are_what_make_lint_runs():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    lint = made[made.index("\nlint:") :].partition("\n\n")[0]
    for hook in hooks:
        tool = Path(hook["entry"].split()[0]).name
        assert f"/{tool}" in lint
