"""The pages of the leaderboard in a browser, from files: views, order and rows live in the address."""

import pytest

from oodscope.leaderboard.site.render import render_pages, write_site
from tests.leaderboard.board_factory import make_board

pytestmark = pytest.mark.browser

TABLE = "benchmarks/cifar10@openood-1.5/standard.html"
SHOWN = """() => [...document.querySelectorAll("section.ranking")].filter((each) => !each.hidden).map((each) => ({
  track: each.dataset.track,
  rows: [...each.querySelectorAll("tbody tr")].filter((row) => !row.hidden).map((row) => ({
    id: row.id, tier: row.dataset.tier, far: row.querySelectorAll("td")[5].dataset.value })) }))"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return write_site(make_board(14), tmp_path_factory.mktemp("site") / "site")


def test_a_view_is_an_address(browser, site):
    page = browser.open(site / TABLE)
    rows = [row["id"] for table in page.evaluate(SHOWN) for row in table["rows"]]
    assert page.inner_text("#found") == f"{len(rows)} rows"
    page.fill("input[name=q]", "ICML")
    page.click("label:has(input[value=recomputed])")
    page.click("label:has(input[value='re-executed'])")
    page.click("label:has(input[value='post-hoc'])")
    page.click("th[data-sort='far.mean'] >> nth=0")
    seen = page.evaluate(SHOWN)
    assert {table["track"] for table in seen} == {"post-hoc"}
    assert {row["tier"] for table in seen for row in table["rows"]} == {"recomputed", "re-executed"}
    for table in seen:
        values = [float(row["far"]) for row in table["rows"] if row["far"] is not None]
        assert values == sorted(values, reverse=True)
    assert 0 < sum(len(table["rows"]) for table in seen) < len(rows)
    again = browser.open(page.url)  # somebody was sent the link
    assert again.evaluate(SHOWN) == seen
    assert again.input_value("input[name=q]") == "ICML"
    assert again.get_attribute("th[data-sort='far.mean'] >> nth=0", "aria-sort") == "descending"
    again.click("th[data-sort='far.mean'] >> nth=0")
    turned = [float(row["far"]) for row in again.evaluate(SHOWN)[0]["rows"] if row["far"] is not None]
    assert turned == sorted(turned)
    again.click("button[type=reset]")
    assert {row["id"] for table in again.evaluate(SHOWN) for row in table["rows"]} == set(rows)
    again.fill("input[name=q]", "no such method")
    assert again.evaluate(SHOWN) == [] and again.is_visible("#nothing")


def test_a_row_is_an_address(browser, site):
    page = browser.open((site / TABLE).as_uri() + "#e-knn-r18")
    assert page.evaluate("document.querySelector(':target').innerText").startswith("knn")
    page = browser.open((site / "methods" / "knn.html").as_uri() + "#e-knn-r18-old")
    assert page.evaluate("document.querySelector(':target').open")


def test_the_bibliography_can_be_copied_and_the_look_changed(browser, site):
    page = browser.open(site / "methods" / "knn.html")
    page.click("button.copy")
    page.wait_for_function("document.querySelector('button.copy').textContent === 'Copied'")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.click("button.theme")
    assert page.evaluate(colour) != light
    assert browser.open(site / "index.html").evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("width", [390, 1400])
def test_no_page_scrolls_sideways(browser, site, width):
    for name in ("index.html", "downloads.html", "methods/index.html", "methods/knn.html", "models/index.html", TABLE):
        page = browser.open(site / name, width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        page.close()


def test_a_large_table_begins_with_its_first_rows(browser, tmp_path):
    for path, text in render_pages(make_board(330)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
        if path == TABLE:
            break
    page = browser.open(tmp_path / TABLE)
    visible = sum(len(table["rows"]) for table in page.evaluate(SHOWN))
    assert visible < 200
    last = page.evaluate("[...document.querySelectorAll('section.ranking tbody tr')].filter((row) => row.hidden)[0].id")
    page.click("button.more >> nth=0")
    assert sum(len(table["rows"]) for table in page.evaluate(SHOWN)) > visible
    sent = browser.open(page.url.split("#")[0] + f"#{last}")  # a row that is not among the first
    assert sent.is_visible(f"#{last}")
