"""The table of docs/seams.md is executed: every row has its test, every seam test its row."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from oodscope.base.catalog import plugins
from oodscope.cli.listing import Kind
from tests.seams.conftest import PLUGIN
from tests.seams.world import done

HERE = Path(__file__).parent
PAGE = (HERE.parent.parent / "docs" / "seams.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| a ")]
SECTIONS = re.findall(r"^\[(oodscope\.\w+)\]$", (PLUGIN / "entry_points.txt").read_text(), flags=re.MULTILINE)


def test_every_row_has_its_test_and_every_test_its_row():
    written = {row[-1].strip("`") for row in ROWS}
    classes = {
        f"{path.name}::{node.name}": {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        for path in HERE.glob("test_*.py")
        if path != Path(__file__)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test")
    }
    assert written == classes.keys()
    assert all({"test_by_python", "test_by_command", "test_by_registration"} <= names for names in classes.values())


def test_every_group_of_the_plugin_is_in_the_table():
    assert sorted(row[2].strip("`") for row in ROWS) == sorted(SECTIONS)


def test_a_protocol_of_ours_has_no_more_than_one_of_others():
    """What draws, ranks or shows numbers asks a protocol; it names none."""
    package = HERE.parent.parent / "src" / "oodscope"
    allowed = {package / "runs" / "comparison" / "sources.py", package / "runs" / "models" / "run.py"}
    naming = {
        path for path in package.rglob("*.py") if re.search("human_centric|HumanCentric", path.read_text("utf-8"))
    }
    assert {path for path in naming - allowed if "human_centric" not in path.parts} == set()


@pytest.mark.parametrize("section", SECTIONS)
def test_it_is_listed(oodscope, section):
    kind = section.removeprefix("oodscope.")
    listed = json.loads(done(oodscope("list", kind, "--json")))
    assert kind in set(Kind) and plugins(kind) and plugins(kind).keys() <= listed.keys()


@pytest.mark.slow
def test_nothing_of_the_plugin_is_imported_before_it_is_asked_for():
    script = (
        "import sys; from oodscope.cli.app import app\n"
        "for kind in " + repr([each.removeprefix("oodscope.") for each in SECTIONS]) + ":\n"
        "    try: app(['list', kind])\n"
        "    except SystemExit: pass\n"
        "import oodscope as oods; oods.load_benchmark('glyphs', images_per_class=2); oods.create_detector('msp')\n"
        "print([name for name in sys.modules if name.startswith('oodscope_plugin')])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "logit_range" in ran.stdout and ran.stdout.splitlines()[-1] == "[]"
