"""What axe-core finds on every page, light and dark, and whether the keyboard reaches what scrolls."""

import pytest

from tests.browser import axe
from tests.browser.made_pages import PAGES
from tests.browser.test_every_page import unfold

pytestmark = pytest.mark.browser

SCROLLING = """[...document.querySelectorAll("*")].filter((element) => element.checkVisibility())
    .filter((element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX))
    .filter((element) => element.scrollWidth > element.clientWidth + 1)
    .filter((element) => element.tabIndex < 0)
    .filter((element) => !element.querySelector("a, button, input, select, summary, [tabindex='0']"))
    .map((element) => `${element.tagName}.${element.className}`)"""

FIRST_CHART = 1.5
"""Seconds of processor time from the start of a page to its first chart: a shared machine makes others longer."""


@pytest.fixture(scope="module")
def checker():
    if reason := axe.script()[1]:
        pytest.skip(reason)


# unfolded, a report with 70 plots takes axe half a minute
UNFOLDED = [pytest.param(name, marks=[pytest.mark.soak] * (name == "report")) for name in PAGES]


@pytest.mark.usefixtures("checker")
@pytest.mark.parametrize("name", UNFOLDED)
def test_nothing_serious_or_critical_is_found(name, made, browser):
    page = browser.open(made(name))
    unfold(page)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert axe.findings(page) == [], scheme


@pytest.mark.usefixtures("checker")
def test_nothing_serious_or_critical_is_found_on_a_report_as_it_opens(made, browser):
    page = browser.open(made("report"), scheme="dark")
    assert axe.findings(page) == []


@pytest.mark.parametrize("name", PAGES)
def test_the_keyboard_reaches_everything_that_scrolls(name, made, browser):
    page = browser.open(made(name), width=600)
    page.wait_for_timeout(200)  # boxes are measured when they are first laid out
    assert page.evaluate(SCROLLING) == []


def test_a_report_is_light_and_its_first_chart_is_soon_there(made, browser):
    path = made("report")
    text = path.read_text(encoding="utf-8")
    pictures = sum(len(part.split(")")[0].split('"')[0]) for part in text.split("data:image/png;base64,")[1:])
    assert len(text) - pictures <= 3_500_000
    page = browser.open(path)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.reload(wait_until="domcontentloaded")
    assert page.locator("table.dots .dot").first.is_visible(), "the first chart needs no script"
    spent = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    assert spent["TaskDuration"] <= FIRST_CHART, "seconds of processor time of the page until the chart is there"
