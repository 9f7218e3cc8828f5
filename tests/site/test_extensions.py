"""What the documentation site makes of docstrings, formulas and result pages, without building it."""

import ast
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.commands import parse

pytest.importorskip("latex2mathml", reason="the site needs the extra docs")
pytest.importorskip("sphinx", reason="the site needs the extra docs")

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"


@pytest.fixture(autouse=True)
def extensions(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    yield
    for name in ("mathml", "docstrings", "reference", "results"):
        sys.modules.pop(name, None)


def formulas():
    """Every formula of docstrings and pages."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(node) or ""
                yield from re.findall(r":math:`([^`]+)`", text)
                yield from re.findall(r"\.\. math::(.*?)(?:\n\s*\n|\Z)", text, re.S)
    for page in (*DOCS.glob("*.md"), *DOCS.glob("theory/*.md")):
        yield from re.findall(r"\$\$(.+?)\$\$", page.read_text(encoding="utf-8"), re.S)


def test_every_formula_becomes_mathml():
    from mathml import to_mathml

    found = list(formulas())
    assert len(found) > 500
    for tex in found:
        assert to_mathml(tex, "block").startswith("<math")


def test_an_unknown_command_is_an_error():
    from mathml import to_mathml

    with pytest.raises(ValueError, match=r"\\nosuchthing"):
        to_mathml(r"\nosuchthing{x}", "inline")


def test_parameters_read_as_sentences():
    from docstrings import described

    lines = ["What.", "", "Parameters", "----------", "dim : of the space. ``None`` takes", "    the paper's rule.", ""]
    assert described(lines)[4:7] == ["dim", "    of the space. ``None`` takes", "    the paper's rule."]
    kept = ["A text with a colon : is no parameter.", "name : neither"]
    assert described(kept) == kept


def test_no_parameter_of_a_public_name_is_taken_for_a_type():
    import inspect

    from docstrings import described
    from sphinx.ext.napoleon import Config, NumpyDocstring

    import oodscope

    checked = 0
    for name in oodscope.__all__:
        text = inspect.getdoc(getattr(oodscope, name)) or ""
        lines = described(text.splitlines())
        made = str(NumpyDocstring(lines, Config(napoleon_use_param=True, napoleon_use_ivar=True), what="function"))
        assert ":type " not in made, name
        checked += made.count(":param ")
    assert checked >= 30


def test_the_index_of_results_has_question_and_date(tmp_path):
    from results import write_index

    page = "# Title\n\n**Question.** Is it\ntrue? More.\n\n**Answer.** It holds. And so on.\n\n**Date.** 2026-01-02\n"
    (tmp_path / "one.md").write_text(page)
    text = write_index(tmp_path).read_text()
    assert "| [Title](one.md). Is it true? | It holds. | 2026-01-02 |" in text


def test_a_page_that_says_first_what_it_is_about_asks_all_the_same(tmp_path):
    from results import row

    page = "# Title\n\n**Question.** Folders are sorted. Does a draw stand\nfor all? Or not?\n\n**Answer.** Yes.\n"
    (tmp_path / "one.md").write_text(page)
    assert row(tmp_path / "one.md").startswith("| [Title](one.md). Does a draw stand for all? | Yes. |")


def test_every_result_page_has_a_question():
    from results import row

    for page in DOCS.glob("results/*.md"):
        if page.name != "index.md":
            assert "](" in row(page) and len(row(page)) > 30


def test_the_reference_has_every_name(tmp_path):
    from reference import write_reference

    import oodscope
    from oodscope.base.catalog import catalog

    write_reference(tmp_path)
    api = (tmp_path / "api.rst").read_text()
    assert all(f"\n{name}\n-" in api for name in oodscope.__all__ if name != "__version__")
    for section in ("detectors", "stream_detectors", "recipes", "benchmarks", "metrics", "protocols"):
        assert {path.stem for path in (tmp_path / section).glob("*.rst")} == {*catalog(section), "index"}
    assert "oodscope evaluate\n---" in (tmp_path / "commands.rst").read_text()


def test_every_command_of_the_reference_and_of_the_tutorials_is_one_of_the_command_line(tmp_path):
    from reference import write_reference

    write_reference(tmp_path)
    texts = [page.read_text("utf-8") for page in tmp_path.rglob("*.rst")]
    texts += [re.sub(r"(?m)^#", "", page.read_text("utf-8")) for page in (DOCS / "tutorials").glob("*.py")]
    lines = [line for text in texts for line in re.sub(r"\\+\n", " ", text).splitlines()]
    typed = {line.strip() for line in lines if re.match(r" {3,}oodscope [a-z]+ ", line)}
    assert len(typed) > 200
    for line in typed:
        parse(shlex.split(line, comments=True)[1:])


def test_the_page_of_a_detector_has_its_measured_rows(tmp_path):
    from reference import write_reference

    write_reference(tmp_path)
    page = (tmp_path / "detectors" / "knn.rst").read_text()
    row = re.search(r"(?m)^\| knn \|.*", (DOCS / "results" / "detectors-cifar.md").read_text("utf-8"))[0]
    values = [cell.strip() for cell in row.split("|")[3:7]]
    assert "Measured\n--------" in page and all(f"- {value}\n" in page for value in values)
    assert ":doc:`/results/imagenet-scale`" in page


def test_every_tutorial_is_a_script_with_a_title():
    tutorials = sorted((DOCS / "tutorials").glob("[0-9]*.py"))
    assert len(tutorials) >= 12
    for path in tutorials:
        lines = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()
        assert set(lines[1]) == {"="} and len(lines[0]) == len(lines[1])


@pytest.mark.parametrize("page", sorted((DOCS / "results").glob("*.md")), ids=lambda page: page.stem)
def test_every_results_page_answers_its_question_or_says_what_was_not_run(page):
    text = page.read_text(encoding="utf-8")
    if page.name != "index.md" and not re.search(r"not yet (run|measured)", text):
        assert re.search(r"^\*\*Answer\.\*\* \S", text, re.M), f"{page.name} has no line **Answer.**"
