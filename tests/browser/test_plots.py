"""The script draws under a page's policy: near ones at once, others later, each for itself."""

import time
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

import pytest

from oodscope.document.figure import Axis, Bars, Figure
from oodscope.report.render import bundle
from oodscope.report.render.plotly import plotly_json
from oodscope.runs.evaluation.figures.disagreement import rank_correlations
from oodscope.runs.evaluation.figures.separation import roc_of_detector, score_histograms
from tests.report.test_plot import EVIL
from tests.results.factory import make_scores

TEMPLATES = files("oodscope.report") / "templates"
STYLE = """
:root { --page: #ffffff; --card: #ffffff; --ink: #101010; --soft: #808080; --line: #dddddd; --best: #0000ff;
  --id: #999999; --c0: #aa0000; --c1: #00aa00; --c2: #0000aa; --c3: #aaaa00; --c4: #00aaaa; --c5: #aa00aa;
  --c6: #110000; --c7: #001100; --c8: #000011; --c9: #111111; }
:root[data-theme="dark"] { --ink: #f0f0f0; --c0: #ff9999; }
body { margin: 10px; }
"""
FIRST, HIDDEN, FAR = "roc-plain-vim", "scores-vim", "rank-correlations"

pytestmark = pytest.mark.browser


def hashed(script):
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def place(name, text):
    return (
        f'<div class="plot" data-figure="{name}"></div>'
        f'<script type="application/json" id="figure-{name}">{text}</script>'
    )


def page():
    scores = make_scores()
    first, hidden, far = roc_of_detector(scores, "vim"), score_histograms(scores, "vim"), rank_correlations(scores)
    assert (first.name, hidden.name, far.name) == (FIRST, HIDDEN, FAR)
    broken = place("broken", '{"data": [null], "layout": {"height": 200}}')
    hostile = Figure(
        "hostile", "", "", (Bars(EVIL, (EVIL,), (1.0,), 0),), Axis(), Axis(scale="names", categories=(EVIL,))
    )
    first, hidden, far, hostile = (place(each.name, plotly_json(each)) for each in (first, hidden, far, hostile))
    scripts = [bundle.script(), (TEMPLATES / "plots.js").read_text(encoding="utf-8")]
    hashes = " ".join(map(hashed, scripts))
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {hashes}"
    return (
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{STYLE}{(TEMPLATES / 'plots.css').read_text(encoding='utf-8')}</style><body>"
        f'<div class="plot" data-figure="missing"></div>{broken}{first}{hostile}'
        f"<details><summary>more</summary>{hidden}</details>"
        f'<div style="height: 9000px"></div>{far}' + "".join(f"<script>{script}</script>" for script in scripts)
    )


def div(name):
    return f"document.querySelector('[data-figure={name}]')"


def drawn(name):
    return f"!!{div(name)}.querySelector('.main-svg')"


def wait_for(opened, condition):
    """Until an expression is true; Playwright's own waiting evaluates text in the page, which its policy forbids."""
    end = time.monotonic() + 30
    while not opened.evaluate(f"Boolean({condition})"):
        assert time.monotonic() < end, f"not within 30 s: {condition}"
        opened.wait_for_timeout(50)


@pytest.mark.parametrize("width", [900, 390])
def test_a_reader_goes_through_the_page(browser, tmp_path, width):
    (tmp_path / "page.html").write_text(page(), encoding="utf-8")
    opened = browser.open(tmp_path / "page.html", width)
    wait_for(opened, f"{drawn(FIRST)} && {drawn('hostile')}")
    assert opened.evaluate(f"{div(FIRST)}.layout.width") == min(760, width - 20)
    assert opened.evaluate(f"{div(FIRST)}.data[0].line.color") == "#aa0000"
    assert opened.evaluate("document.documentElement.scrollWidth") <= width

    # a broken figure says so and stops no other
    for name in ("missing", "broken"):
        assert opened.evaluate(f"{div(name)}.textContent").startswith("This figure cannot be drawn")

    # names are text
    assert opened.evaluate("document.querySelectorAll('a[href^=javascript], .plot script').length") == 0

    # what is far away or closed waits
    assert not opened.evaluate(drawn(FAR))
    assert not opened.evaluate(drawn(HIDDEN))

    # the axis can be switched, and the theme leaves that alone
    assert opened.evaluate("document.querySelectorAll('.plot-scale').length") == 1
    opened.evaluate("document.querySelector('.plot-scale').click()")
    wait_for(opened, f"{div(FIRST)}.layout.xaxis.type === 'log'")
    assert opened.evaluate("document.querySelector('.plot-scale').ariaPressed") == "true"
    opened.evaluate("document.documentElement.dataset.theme = 'dark'")
    wait_for(opened, f"{div(FIRST)}.layout.font.color === '#f0f0f0'")
    assert opened.evaluate(f"{div(FIRST)}.data[0].line.color") == "#ff9999"
    assert opened.evaluate(f"{div(FIRST)}.layout.xaxis.type") == "log"

    # a pointer is told numbers with their meaning
    opened.evaluate(f"void Plotly.Fx.hover({div(FIRST)}, [{{curveNumber: 0, pointNumber: 50}}])")
    wait_for(opened, f"{div(FIRST)}.querySelector('.hovertext')")
    words = opened.evaluate(f"{div(FIRST)}.querySelector('.hovertext').textContent")
    assert "of OOD" in words
    assert "of ID by mistake" in words

    # what is opened or comes near is drawn
    opened.locator("summary").scroll_into_view_if_needed()
    opened.evaluate("document.querySelector('details').open = true")
    wait_for(opened, drawn(HIDDEN))
    opened.evaluate("document.querySelector('details').open = false")
    opened.evaluate("document.documentElement.dataset.theme = 'light'")
    wait_for(opened, f"{div(FIRST)}.layout.font.color === '#101010'")
    opened.evaluate("document.querySelector('details').open = true")
    wait_for(opened, f"{div(HIDDEN)}.layout.font.color === '#101010'")
    opened.evaluate(f"{div(FAR)}.scrollIntoView()")
    wait_for(opened, drawn(FAR))
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
