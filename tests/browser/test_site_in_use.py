"""The leaderboard's site does what a reader asks of it, from a folder and from a server."""

import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.browser.tables import rows, values

pytestmark = pytest.mark.browser


@pytest.fixture
def page(browser, made):
    return browser.open(made("site-table"))


def shown(page):
    """The ids of the rows of all tables that a reader sees, in order."""
    return page.evaluate(
        "[...document.querySelectorAll('table.board tbody tr')].filter((row) => row.checkVisibility())"
        ".map((row) => row.id)"
    )


def test_a_click_on_a_heading_sorts_and_the_address_keeps_it(page, browser):
    table = page.locator("table.board").first
    heads = table.locator("thead tr").last.locator("th")
    place = heads.all_text_contents().index("svhn")
    before = values(table, place)
    assert len(before) > 2
    heads.nth(place).click()
    ordered = sorted((value for value in before if value is not None), reverse=True)
    assert [value for value in values(table, place) if value is not None] == ordered
    assert "sort=-far.svhn" in page.url
    again = browser.open(page.url)
    assert shown(again) == shown(page)
    assert values(again.locator("table.board").first, place) == values(table, place)


def test_search_and_ticks_keep_rows_and_the_address_keeps_them(page, browser):
    everything = shown(page)
    page.get_by_role("searchbox").fill("knn")
    found = shown(page)
    assert 0 < len(found) < len(everything)
    assert all("knn" in page.locator(f"[id='{row}']").text_content().lower() for row in found)
    page.get_by_role("searchbox").fill("")
    tick = page.locator("input[name=tier][value=retrained]")
    tick.check(force=True)
    kept = shown(page)
    assert 0 < len(kept) < len(everything)
    assert {page.locator(f"[id='{row}']").get_attribute("data-tier") for row in kept} == {"retrained"}
    again = browser.open(page.url)
    assert shown(again) == kept
    assert again.locator("input[name=tier][value=retrained]").is_checked()
    again.get_by_role("button", name="Show all").click()
    assert shown(again) == everything


def test_nothing_found_is_said(page):
    page.get_by_role("searchbox").fill("no such method")
    assert shown(page) == []
    assert page.get_by_text("No entry fits these filters").is_visible()


def test_a_link_to_a_row_shows_that_row(page, browser):
    last = shown(page)[-1]
    narrow = browser.open(f"{page.url}#{last}", width=390)
    box = narrow.locator(f"[id='{last}']").bounding_box()
    assert 0 <= box["y"] < 900


def test_every_link_of_the_site_leads_somewhere(made, browser):
    """Walks from the front page to every page that a link names."""
    front = made("site")
    folder, waiting, seen = front.parent, [front], set()
    while waiting:
        place = waiting.pop()
        seen.add(place)
        text = place.read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="([^"#]+)', text):
            if re.match(r"[a-z]+:", target):
                continue
            found = (place.parent / target).resolve()
            assert found.is_file(), f"{place.relative_to(folder)} links to {target}"
            if found.suffix == ".html" and found not in seen and found not in waiting:
                waiting.append(found)
    assert seen == set(folder.rglob("*.html"))


def test_the_same_pages_work_from_a_server(made, browser):
    folder = made("site").parent
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.open(f"http://127.0.0.1:{server.server_port}/index.html")
        page.get_by_role("link", name="Methods", exact=True).click()
        page.wait_for_url("**/methods/index.html")
        assert rows(page.locator("table").first)
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def test_one_table_holds_the_rows_of_all_tracks_with_the_track_as_a_column(page, browser):
    apart = shown(page)
    tables = page.locator("section.ranking").count()
    assert tables > 1
    page.locator("input[name=view][value=one]").check(force=True)
    (one,) = [each for each in page.locator("section.ranking").all() if each.is_visible()]
    assert sorted(shown(page)) == sorted(apart) and one.locator("h2").text_content() == "All tracks"
    heads = one.locator("thead tr").last.locator("th").all_text_contents()
    near = [value for value in values(one.locator("table"), 3) if value is not None]
    assert near == sorted(near, reverse=True) and len(near) > 3
    assert one.locator("tbody tr td").nth(heads.index("track") - 1).is_visible()
    again = browser.open(page.url)
    assert shown(again) == shown(page)
    page.locator("input[name=view][value=one]").uncheck(force=True)
    assert shown(page) == apart


def test_columns_can_be_hidden_and_the_address_keeps_them(page, browser):
    head = page.locator("table.board thead tr").nth(1).locator("th[data-sort='far.svhn']").first
    group = page.locator("table.board thead tr").first.locator("th", has_text="far").first
    before = int(group.get_attribute("colspan"))
    page.locator("input[name=hide][value='far.svhn']").check(force=True)
    assert not head.is_visible() and int(group.get_attribute("colspan")) == before - 1
    again = browser.open(page.url)
    assert not again.locator("th[data-sort='far.svhn']").first.is_visible()
    again.get_by_role("button", name="Show all").click()
    assert again.locator("th[data-sort='far.svhn']").first.is_visible()


def test_two_rows_can_be_compared_and_what_noise_hides_is_said(page, browser):
    panel = page.locator("#compare")
    assert not panel.is_visible()
    picks = [each for each in page.locator("input.pick").all() if each.is_visible()]
    names = []
    for pick in picks[:2]:
        pick.check()
        names.append(pick.get_attribute("aria-label").removeprefix("Compare "))
    assert panel.locator("thead th").all_text_contents() == ["column", *names, "difference", "better"]
    lines = panel.locator("tbody tr").all()
    assert len(lines) > 2
    for line in lines:
        first, second, gap, verdict = line.locator("td").all_text_contents()
        one, other = (float(re.match(r"[0-9.]+", text)[0]) for text in (first, second))
        assert abs(one - other - float(gap)) < 0.011
        assert verdict in names or verdict.startswith("cannot say")
    again = browser.open(page.url)
    assert again.locator("#compare tbody tr").count() == len(lines)
    picks[0].uncheck()
    assert "choose a second row" in panel.text_content()
