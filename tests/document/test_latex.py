"""Every LaTeX table can be set: by a small grammar always, by pdflatex where there is one."""

import re
import shutil
import subprocess
from functools import cache

import pytest

from oodscope.document.sheet import Entry, Sheet
from oodscope.report.page.crossval import metric_sheets, overall_sheets
from oodscope.runs.attack.table import attack_table
from oodscope.runs.crossval.study import study_metric
from oodscope.runs.generated.table import calibration_table, separation_table
from tests.results.factory import make_result
from tests.runs.crossval import made_studies
from tests.runs.generated.generated_world import study


@cache
def tables():
    result, studies = make_result(), [study_metric(made_studies.table(), name) for name in made_studies.table().metrics]
    made = {
        "standard": result.table().render("latex"),
        "full spectrum": result.table("full_spectrum", "fpr95_id_positive").render("latex"),
        "attack": attack_table(made_studies.attack()).render("latex"),
        "detectors": separation_table(study()).render("latex"),
        "calibration": calibration_table(study()).render("latex"),
        "comparisons": made_studies.comparisons().sheet().render("latex"),
    }
    return made | {sheet.name: sheet.latex() for sheet in (*metric_sheets(studies[0]), *overall_sheets(studies))}


def columns(line):
    spans = [int(number) for number in re.findall(r"\\multicolumn\{(\d+)\}", line)]
    return len(re.findall(r"(?<!\\)&", line)) + 1 + sum(spans) - len(spans)


def test_the_best_is_bold_and_what_noise_could_explain_is_marked():
    for name in ("standard", "detectors", "calibration", "attack", "truth", "cross-validated"):
        assert r"\textbf{" in tables()[name], name
    assert r"$^\dagger$" in tables()["standard"]
    for separate in (separation_table(study()), calibration_table(study())):
        for column, name in enumerate(separate.columns):
            pairs = [
                (row[column + 2], cells[column]) for row, (_, _, cells) in zip(separate.sheet().rows, separate.rows)
            ]
            pairs = [(entry, cell) for entry, cell in pairs if cell is not None]
            pick = max if separate.metric == "auroc" else min
            best = pick((cell for _, cell in pairs), key=lambda cell: cell.value)
            for entry, cell in pairs:
                known = None not in (cell.low, best.low)
                close = known and cell.low <= best.high and best.low <= cell.high
                assert entry.strong == (cell.value == best.value), (name, entry)
                assert entry.text.endswith("†") == (close and not entry.strong), (name, entry)


def test_whole_numbers_can_be_bold_and_have_a_real_minus():
    sheet = Sheet("s", "t", ("", "a", "b"), ((Entry("x"), Entry("3", 3, True), Entry("-12", -12, True)),))
    assert r"x & \textbf{3} & \textbf{$-$12} \\" in sheet.latex()


def test_an_attack_marks_what_intervals_do_not_tell_apart():
    table = attack_table(made_studies.attack())
    for number in range(len(table.columns)):
        cells = [cells[number] for _, cells in table.rows]
        best = max(cells, key=lambda cell: cell.row.value)
        for cell in cells:
            rival = cell.row.value < best.row.value
            assert cell.close == (rival and cell.row.low <= best.row.high and best.row.low <= cell.row.high)
            assert cell.marks.startswith("†") == cell.close and cell.marks.endswith("*") == bool(cell.unreliable)
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
