"""Every LaTeX table can be set: by a small grammar always, by pdflatex where there is one."""

import re
import shutil
import subprocess
from functools import cache

import pytest

from oodscope.document.table import Entry, Row, Table
from oodscope.document.table import columns as heads
from oodscope.runs.attack.table import attack_table
from oodscope.runs.generated.table import calibration_table, separation_table
from tests.document import every_table
from tests.runs.crossval import made_studies
from tests.runs.generated.generated_world import study


@cache
def tables():
    return {name: table.render("latex") for name, table in every_table.tables().items()}


def columns(line):
    spans = [int(number) for number in re.findall(r"\\multicolumn\{(\d+)\}", line)]
    return len(re.findall(r"(?<!\\)&", line)) + 1 + sum(spans) - len(spans)


def test_the_best_is_bold_and_what_noise_could_explain_is_marked():
    for name in ("standard", "detectors", "calibration", "attack", "truth", "cross-validated"):
        assert r"\textbf{" in tables()[name], name
    assert r"$^\dagger$" in tables()["standard"]
    for separate in (separation_table(study()), calibration_table(study())):
        for place, column in enumerate(separate.columns):
            cells = [row.cells[place] for row in separate.rows if row.cells[place] is not None]
            pick = max if separate.name == "auroc" else min
            best = pick(cells, key=lambda cell: cell.value)
            for cell in cells:
                known = None not in (cell.low, best.low)
                close = known and cell.low <= best.high and best.low <= cell.high
                assert cell.best == (cell.value == best.value), (column, cell)
                assert cell.text.endswith("†") == (close and not cell.best), (column, cell)


def test_whole_numbers_can_be_bold_and_have_a_real_minus():
    row = Row((Entry("x"),), (Entry("3", 3, True), Entry("-12", -12, True)))
    table = Table("s", "t", heads(""), heads("a", "b"), (row,))
    assert r"x & \textbf{3} & \textbf{$-$12} \\" in table.render("latex")


def test_an_attack_marks_what_intervals_do_not_tell_apart():
    table = attack_table(made_studies.attack())
    for number in range(len(table.columns)):
        cells = [row.cells[number] for row in table.rows]
        best = max(cells, key=lambda cell: cell.value)
        for cell in cells:
            rival = cell.value < best.value
            assert cell.close == (rival and cell.low <= best.high and best.low <= cell.high)
            assert cell.marks.startswith("†") == cell.close and cell.marks.endswith("*") == bool(cell.doubts)
    assert r"\caption{" in tables()["attack"] and r"\footnotesize AUROC in percent" in tables()["attack"]


def test_rows_braces_and_environments():
    assert len(tables()) > 15
    for name, text in tables().items():
        body = re.sub(r"\\[\\{}&%$#_]", lambda found: r"\\" if found.group() == r"\\" else "", text)
        assert body.count("{") == body.count("}"), name
        assert body.count("$") % 2 == 0, name
        opened = []
        for what, environment in re.findall(r"\\(begin|end)\{(\w+)\}", text):
            if what == "begin":
                opened.append(environment)
            else:
                assert opened.pop() == environment, name
        assert not opened
        (layout,) = re.findall(r"\\begin\{tabular\}\{(\w+)\}", text)
        inner = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
        rows = [line for line in inner.splitlines() if line.endswith(r"\\")]
        assert {columns(line) for line in rows} == {len(layout)}, name
        # an engine without Unicode fonts knows no other letters
        assert not re.findall(r"[^\x00-\xff’“”—–]", text), (name, set(re.findall(r"[^\x00-\xff]", text)))
        assert not re.search(r"(?<!\\)[#%_^]", re.sub(r"\$[^$]*\$", "", text.replace(text.splitlines()[0], ""))), name


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex here")
def test_pdflatex_sets_them_all(tmp_path):
    document = "\n\\clearpage\n".join(tables().values())
    source = f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}\n{document}\\end{{document}}\n"
    (tmp_path / "tables.tex").write_text(source, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    log = done.stdout.decode("latin-1")
    assert done.returncode == 0, log[-2000:]
    assert "Undefined" not in log and "Missing character" not in log
    assert (tmp_path / "tables.pdf").read_bytes().startswith(b"%PDF")
