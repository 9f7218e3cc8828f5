"""What a printer gets, what the keyboard reaches, and one colour for one detector: each was wrong in 0.1."""

import re
from pathlib import Path

import pytest

from oodscope.base.catalog import catalog
from oodscope.report.page import templating
from tests.browser.made_pages import DETECTORS

pytestmark = pytest.mark.browser

WIDTH = 718
"""CSS pixels between the margins of an A4 page, about."""

BLANK = """[...document.querySelectorAll(".plot[data-figure]")].filter((plot) => plot.checkVisibility())
    .filter((plot) => !plot.querySelector(".main-svg")).map((plot) => plot.dataset.figure)"""


def wait_until(page, condition):
    """Ask again and again; the page's policy does not let playwright put the question inside it."""
    for _ in range(600):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never: {condition}")


@pytest.fixture(scope="module")
def printed(chromium, made):
    """The report as it is when a browser that prefers dark begins to print it: nobody has scrolled."""
    from tests.browser.browser import Browser

    browser = Browser(chromium)
    page = browser.open(made("report"), scheme="dark")
    wait_until(page, "typeof Plotly.newPlot === 'function'")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    blank = page.evaluate(BLANK)  # at once: a printer does not wait
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": WIDTH, "height": 1000})
    yield page, blank
    browser.close()
    browser.check()


def test_every_plot_is_drawn_before_the_printer_looks(printed):
    page, blank = printed
    assert page.locator(".plot[data-figure]").count() > 5 and blank == []


def test_pictures_and_shading_are_printed(printed):
    page, _ = printed
    for selector in (".seen", "td.best"):
        assert page.locator(selector).first.evaluate("(e) => getComputedStyle(e).printColorAdjust") == "exact"


def test_no_table_and_no_plot_is_cut(printed):
    page, _ = printed
    wide = page.evaluate(
        """(width) => [...document.querySelectorAll(".scroll table, .plot .main-svg")]
            .filter((e) => e.checkVisibility()).map((e) => e.getBoundingClientRect().right)
            .filter((right) => right > width + 2)""",
        WIDTH,
    )
    assert wide == []


def test_a_dark_reader_prints_dark_letters_on_white(printed):
    page, _ = printed
    ink = page.evaluate("getComputedStyle(document.body).color.match(/\\d+/g).map(Number)")
    assert max(ink) < 80
    letters = page.evaluate(
        """[...document.querySelectorAll(".plot .xtick text, .plot .ytick text, .plot .legendtext")]
            .map((e) => getComputedStyle(e).fill.match(/\\d+/g)[0])"""
    )
    assert letters and max(map(int, letters)) < 120


def test_what_needs_a_pointer_is_not_printed(printed):
    page, _ = printed
    for selector in ("nav", "button", ".filter", "p.sideways"):
        assert not any(each.is_visible() for each in page.locator(selector).all()), selector
    assert page.locator("h2").last.evaluate("(e) => getComputedStyle(e).breakAfter") == "avoid"


def test_hidden_columns_are_announced_and_reached_by_keyboard(browser, made):
    page = browser.open(made("report"), width=600)
    wait_until(page, "document.querySelector('p.sideways') !== null")
    boxes = page.evaluate(
        """[...document.querySelectorAll(".scroll")].filter((box) => box.checkVisibility())
            .map((box) => [box.scrollWidth > box.clientWidth + 1, box.tabIndex === 0 && box.ariaLabel !== null,
                box.nextElementSibling?.className === "sideways"])"""
    )
    assert any(wider for wider, *_ in boxes)
    assert all(wider == focusable == said for wider, focusable, said in boxes)


def test_a_detector_has_one_colour_in_the_whole_file(browser, made):
    page = browser.open(made("report"))
    colours = page.evaluate(
        """() => [...document.querySelectorAll("script[id^=figure-]")]
            .flatMap((script) => JSON.parse(script.textContent).data)
            .filter((trace) => typeof trace.meta?.colour === "number")
            .map((trace) => [trace.name, trace.meta.colour])"""
    )
    for name in DETECTORS:
        dots = page.locator("table.dots tr").filter(has=page.locator("th", has_text=re.compile(f"^{name}")))
        drawn = {place % 10 for own, place in colours if own == name}
        assert len({place for own, place in colours if own == name}) == 1, name
        shown = dots.first.locator(".track").first.get_attribute("class")
        assert {int(shown[-1])} == drawn


def test_no_two_detectors_share_a_look():
    script = (Path(templating.__file__).parent.parent / "templates" / "plots.js").read_text(encoding="utf-8")
    colours = int(re.search(r"COLOURS = (\d+)", script)[1])
    for name in ("DASHES", "SYMBOLS"):
        looks = re.search(rf"{name} = \[(.*?)\]", script)[1].split('", "')
        assert len(set(looks)) == len(looks) and colours * len(looks) >= 48
    assert len(catalog("detectors")) > 40, "what 0.1 drew with 18 looks"
