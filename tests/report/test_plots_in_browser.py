"""The script draws under a page's policy: near ones at once, others later, each for itself."""

import shutil
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

import pytest

from oodscope.report.plots import PlotlyFigure, bundle, rank_correlations, roc_of_detector, score_histograms
from tests.report.browser import Browser
from tests.report.test_plot import EVIL
from tests.results.factory import make_scores

TEMPLATES = files("oodscope.report") / "templates"
STYLE = """
:root { --page: #ffffff; --card: #ffffff; --ink: #101010; --soft: #808080; --line: #dddddd; --best: #0000ff;
  --id: #999999; --c0: #aa0000; --c1: #00aa00; --c2: #0000aa; --c3: #aaaa00; --c4: #00aaaa; --c5: #aa00aa; }
:root[data-theme="dark"] { --ink: #f0f0f0; --c0: #ff9999; }
body { margin: 10px; }
"""
FIRST, HIDDEN, FAR = "roc-plain-vim", "scores-vim", "rank-correlations"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium"),
]


def hashed(script):
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def place(figure):
    return (
        f'<div class="plot" data-figure="{figure.name}"></div>'
        f'<script type="application/json" id="figure-{figure.name}">{figure.json()}</script>'
    )


def page():
    scores = make_scores()
    first, hidden, far = roc_of_detector(scores, "vim"), score_histograms(scores, "vim"), rank_correlations(scores)
    assert (first.name, hidden.name, far.name) == (FIRST, HIDDEN, FAR)
    broken = PlotlyFigure("broken", "", "", (None,), {"height": 200})
    hostile = PlotlyFigure("hostile", "", "", ({"type": "bar", "x": [1], "y": [EVIL], "name": EVIL},), {"height": 200})
    scripts = [bundle.script(), (TEMPLATES / "plots.js").read_text(encoding="utf-8")]
    hashes = " ".join(map(hashed, scripts))
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {hashes}"
    return (
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{STYLE}{(TEMPLATES / 'plots.css').read_text(encoding='utf-8')}</style><body>"
        f'<div class="plot" data-figure="missing"></div>{place(broken)}{place(first)}{place(hostile)}'
        f"<details><summary>more</summary>{place(hidden)}</details>"
        f'<div style="height: 9000px"></div>{place(far)}' + "".join(f"<script>{script}</script>" for script in scripts)
    )


def div(name):
    return f"document.querySelector('[data-figure={name}]')"


def drawn(name):
    return f"!!{div(name)}.querySelector('.main-svg')"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "page.html").write_text(page(), encoding="utf-8")
    browser = Browser(folder / "profile")
    browser.page = (folder / "page.html").as_uri()
    try:
        yield browser
    finally:
        browser.close()


@pytest.mark.parametrize("width", [900, 390])
def test_a_reader_goes_through_the_page(browser, width):
    browser.open(browser.page, width)
    browser.wait_for(f"{drawn(FIRST)} && {drawn('hostile')}")
    assert browser.value(f"{div(FIRST)}.layout.width") == min(760, width - 20)
    assert browser.value(f"{div(FIRST)}.data[0].line.color") == "#aa0000"
    assert browser.value("document.documentElement.scrollWidth") <= width

    # a broken figure says so and stops no other
    for name in ("missing", "broken"):
        assert browser.value(f"{div(name)}.textContent").startswith("This figure cannot be drawn")

    # names are text
    assert browser.value("document.querySelectorAll('a[href^=javascript], .plot script').length") == 0

    # what is far away or closed waits
    assert not browser.value(drawn(FAR))
    assert not browser.value(drawn(HIDDEN))

    # the axis can be switched, and the theme leaves that alone
    assert browser.value("document.querySelectorAll('.plot-scale').length") == 1
    browser.value("document.querySelector('.plot-scale').click()")
    browser.wait_for(f"{div(FIRST)}.layout.xaxis.type === 'log'")
    assert browser.value("document.querySelector('.plot-scale').ariaPressed") == "true"
    browser.value("document.documentElement.dataset.theme = 'dark'")
    browser.wait_for(f"{div(FIRST)}.layout.font.color === '#f0f0f0'")
    assert browser.value(f"{div(FIRST)}.data[0].line.color") == "#ff9999"
    assert browser.value(f"{div(FIRST)}.layout.xaxis.type") == "log"

    # a pointer is told numbers with their meaning
    browser.value(f"void Plotly.Fx.hover({div(FIRST)}, [{{curveNumber: 0, pointNumber: 50}}])")
    browser.wait_for(f"{div(FIRST)}.querySelector('.hovertext')")
    words = browser.value(f"{div(FIRST)}.querySelector('.hovertext').textContent")
    assert "of OOD" in words
    assert "of ID by mistake" in words

    # what is opened or comes near is drawn
    browser.value("document.querySelector('details').open = true")
    browser.wait_for(drawn(HIDDEN))
    browser.value("document.querySelector('details').open = false")
    browser.value("document.documentElement.dataset.theme = 'light'")
    browser.wait_for(f"{div(FIRST)}.layout.font.color === '#101010'")
    browser.value("document.querySelector('details').open = true")
    browser.wait_for(f"{div(HIDDEN)}.layout.font.color === '#101010'")
    browser.value(f"{div(FAR)}.scrollIntoView()")
    browser.wait_for(drawn(FAR))
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.complaints == []
