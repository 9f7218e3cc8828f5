"""The page of an attack: numbers as measured, names escaped, pictures inside."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

import oodscope as oods
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.generation.samplers.metropolis_hastings import MetropolisHastings
from oodscope.report.page.attack import render, write_attack
from oodscope.runs.attack.table import attack_table
from tests.generation.toys import Shift
from tests.tiny import benchmark

EVIL = '<b onclick="x">&'


@pytest.fixture(scope="module")
def attack():
    bench = benchmark()
    scorers = {
        EVIL: FunctionScorer(lambda images: images.mean(dim=(1, 2, 3))),
        "std": FunctionScorer(lambda images: images.std(dim=(1, 2, 3))),
    }
    options = {"budget": 8, "chains": 15, "sampler": MetropolisHastings()}  # a gradient breaks both, to an AUROC of 0
    return oods.attack(scorers, bench.id_val, bench.id_test, bench.far[0], {"shift": Shift()}, **options)


def test_it_needs_nothing_but_a_browser(attack, tmp_path):
    page = write_attack(attack, tmp_path).read_text()
    assert EVIL not in page
    assert "&lt;b onclick=" in page
    assert "http" not in re.sub(r"Content-Security-Policy|http-equiv", "", page)
    pictures = re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", page)
    assert len(pictures) == 2 * 2 * 10  # two detectors, ten images, each beside its source
    worst = attack.search(attack_table(attack).rows[0].name, "shift").worst
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(pictures[1]))))
    assert (shown == worst.images[0]).all()
    assert f"rank {worst.ranks[0]}" in page


def test_the_numbers_are_those_measured(attack):
    page, rows = render(attack), attack.result.measurements
    for row in rows.filter(protocol="attack"):
        if row.metric in ("auroc", "min_rank"):
            assert f'data-value="{row.value}"' in page
    for row in rows.filter(protocol="attack_transfer"):
        ends = f"<small>{100 * row.low:.0f}–{100 * row.high:.0f}</small>"
        assert f">{100 * row.value:.1f} {ends}</td>" in page
    for pair in attack.searches:
        for flag in pair.flags:
            assert flag in page
    # a function has no white box worth the name in one column, and every search has its line
    assert page.count('<tr><th scope="row">') >= 2 * (1 + 1 + 1 + 1)


def test_tables_in_the_papers_shape(attack, tmp_path):
    write_attack(attack, tmp_path)
    table = attack_table(attack)
    clean = [row.cells[0].value for row in table.rows]
    assert clean == sorted(clean, reverse=True)
    assert [column.key for column in table.columns] == [
        "auroc clean",
        "auroc shift",
        "min_rank clean",
        "min_rank shift",
    ]
    header, first, *_ = (tmp_path / "table.csv").read_text().splitlines()
    assert header.startswith("detector,auroc clean,auroc clean low,auroc clean high,auroc shift")
    assert float(first.rsplit('",', 1)[-1].split(",")[0] if first.startswith('"') else first.split(",")[1]) == clean[0]
    assert r"\multicolumn{2}{c}{MinRank $\uparrow$}" in (tmp_path / "table.tex").read_text()
    assert "<b" not in (tmp_path / "table.md").read_text().replace("\\<b", "")


def test_its_figures_are_those_of_the_report(attack):
    page = render(attack)
    for name in ("budget-shift-run1", "lowest-shift-run1", "found-shift-brightness-run1"):
        assert f'id="figure-{name}"' in page
    assert "<svg" not in page
