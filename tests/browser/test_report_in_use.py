"""The report does what a reader asks of it: sort, filter, unfold, point, link."""

import json
import re

import pytest

from oodscope.document.table import single_groups
from tests.browser.made_pages import small_result
from tests.browser.tables import rows, values

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def shared(chromium, made):
    from tests.browser.browser import Browser

    browser = Browser(chromium)
    yield browser, browser.open(made("report"))
    browser.close()


@pytest.fixture
def page(shared):
    """One page for all tests of this file, each of which leaves it as it was: it takes a moment to open."""
    browser, page = shared
    yield page
    browser.check()


def detector_table(page):
    return page.locator("table[data-metric=auroc][data-protocol=standard]").first


def test_a_click_on_a_heading_sorts_each_track_and_another_turns_it_round(page):
    table = detector_table(page)
    heads = table.locator("thead tr").last.locator("th")
    place = heads.all_text_contents().index("textures")
    bodies = table.locator("tbody")

    def tracks():
        found = [[value for value in values(body, place) if value is not None] for body in bodies.all()]
        assert sum(map(len, found)) == 4 and len(found) == 2
        return found

    before = tracks()
    heads.nth(place).click()
    assert heads.nth(place).get_attribute("aria-sort") == "descending"
    assert tracks() == [sorted(each, reverse=True) for each in before]
    assert before != tracks()
    heads.nth(place).press("Enter")
    assert heads.nth(place).get_attribute("aria-sort") == "ascending"
    assert tracks() == [sorted(each) for each in before]


def test_every_column_of_a_sortable_table_can_be_sorted_by(page):
    heads = ":is(table[data-metric], table.sortable) thead tr:last-child > *"
    assert page.locator(heads).count() > 20
    assert page.locator(f"{heads}[title='Sort by this column']").count() == page.locator(heads).count()


def test_the_box_keeps_the_detectors_that_are_named(page):
    table = detector_table(page)
    section = page.locator("section, [data-filter]").filter(has=table).last
    box = section.get_by_role("searchbox")
    box.fill("KNN, vim")
    names = [row[0] for row in rows(table) if len(row) > 1]
    assert sorted(names) == ["knn", "vim"]
    box.fill("")
    assert len([row for row in rows(table) if len(row) > 1]) == 4


def test_a_tick_hides_a_group_of_columns(page):
    table = detector_table(page)
    section = page.locator("section, [data-filter]").filter(has=table).last
    before = [len(row) for row in rows(table)]
    section.get_by_role("checkbox", name="far").uncheck()
    heads = [text for text in table.locator("thead th").all_text_contents() if text]
    shown = [text for text in heads if table.locator("thead th", has_text=text).first.is_visible()]
    assert "textures" in heads and "textures" not in shown and "held_out" in shown
    after = [len(row) for row in rows(table)]
    assert max(after) == max(before) - 4  # three far sets and their mean
    section.get_by_role("checkbox", name="far").check()
    assert [len(row) for row in rows(table)] == before


def test_a_link_leads_to_its_section(page, browser, made):
    targets = [link.get_attribute("href") for link in page.locator("nav a[href^='#']").all()]
    assert len(targets) > 3
    for target in targets:
        page.locator(f"nav a[href='{target}']").first.click()
        assert page.locator(f"[id='{target[1:]}']").bounding_box()["y"] < 900, target
    # as a permalink, before anything below or above was drawn
    other = browser.open(f"{made('report').as_uri()}{targets[len(targets) // 2]}")
    assert -2 <= other.locator(f"[id='{targets[len(targets) // 2][1:]}']").bounding_box()["y"] < 300


def test_what_is_folded_opens(page):
    table = page.locator("table[data-metric=aupr_out]").first
    assert not table.is_visible()
    around = page.locator("details").filter(has=table)  # outermost first
    for place in range(around.count()):
        around.nth(place).locator("summary").first.click()
    assert table.is_visible()


def figure(page, div):
    return json.loads(page.locator(f"script#figure-{div.get_attribute('data-figure')}").text_content())


def drawn(page, selector=".plot[data-figure]"):
    """The first plot of a page, on the screen."""
    div = page.locator(selector).first
    div.scroll_into_view_if_needed()
    div.locator(".main-svg").first.wait_for(state="attached")
    return div


def test_pointing_at_a_plot_shows_a_number_of_its_data(page):
    div = drawn(page)
    # the middle of the longest trace, in pixels of the window
    spot = div.evaluate(
        """(div) => {
            const sizes = div.data.map((each) => (each.x ?? []).length);
            const number = sizes.indexOf(Math.max(...sizes));
            const trace = div._fullData[number], place = Math.floor(trace.x.length / 2);
            const { xaxis, yaxis } = div._fullLayout, box = div.getBoundingClientRect();
            return {
              number, place,
              x: box.left + xaxis._offset + xaxis.d2p(trace.x[place]),
              y: box.top + yaxis._offset + yaxis.d2p(trace.y[place]),
            };
        }"""
    )
    page.mouse.move(spot["x"] - 3, spot["y"])
    page.mouse.move(spot["x"], spot["y"])
    label = div.locator(".hoverlayer .hovertext").first
    label.wait_for(state="visible")
    said = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", label.text_content())]
    known = [number for trace in figure(page, div)["data"] for number in numbers(trace)]
    assert any(abs(one - other) <= 0.051 for one in said for other in known), (said, label.text_content())


def numbers(value):
    """Every number anywhere in the data, as it is and in percent."""
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield value
        yield 100 * value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from numbers(each)


def test_a_plot_follows_light_and_dark(page):
    div = drawn(page)
    ink = "(div) => [...div.querySelectorAll('.main-svg text')].map((text) => getComputedStyle(text).fill)[0]"
    light = div.evaluate(ink)
    page.emulate_media(color_scheme="dark")
    dark = changed(div, ink, light)
    page.get_by_role("button", name="light and dark").click()
    assert changed(div, ink, dark) == light


def changed(div, script, before):
    """What a script says once it no longer says the same; drawing takes a moment."""
    for _ in range(200):
        now = div.evaluate(f"async (div) => {{ await new Promise(requestAnimationFrame); return ({script})(div); }}")
        if now != before:
            return now
    raise AssertionError(f"still {before}")


def test_the_axis_may_be_logarithmic(page):
    page.evaluate("for (const name of ['beforeprint', 'afterprint']) dispatchEvent(new Event(name))")
    button = page.get_by_role("button", name="Logarithmic axis").first
    button.wait_for(state="attached")
    div = page.locator(".plot[data-figure]:has(.main-svg)").and_(page.locator("button.plot-scale + .plot")).first
    axis = figure(page, div)["layout"]["meta"]["log_axis"]
    kind = f"(div) => div._fullLayout.{axis}axis.type"
    div.locator("xpath=ancestor::details").evaluate_all("(all) => { for (const each of all) each.open = true; }")
    switch = div.locator("xpath=preceding-sibling::button[1]")
    before = div.evaluate(kind)
    switch.click()
    assert switch.get_attribute("aria-pressed") == "true"
    assert (before, changed(div, kind, before)) == ("linear", "log")
    switch.click()
    assert changed(div, kind, "log") == "linear"


def test_every_plot_can_be_drawn(page):
    page.evaluate("for (const name of ['beforeprint', 'afterprint']) dispatchEvent(new Event(name))")
    plots = page.locator(".plot[data-figure]").all()
    assert plots
    for plot in plots:
        plot.locator(".main-svg").first.wait_for(state="attached")
    assert page.get_by_text("This figure cannot be drawn").count() == 0


def test_the_numbers_shown_are_those_measured(page):
    """A browser's own reading of the page, against the result that it was made from."""
    shown = page.evaluate(
        "[...document.querySelectorAll('table[data-protocol=standard][data-metric=auroc] td[data-value]:not(.rank)')]"
        ".map((cell) => Number(cell.dataset.value))"
    )
    measured = small_result().measurements.filter(protocol="standard", metric="auroc")
    rows = [row for row in measured if row.detector]
    single = single_groups((row.group, row.set) for row in rows)
    # the mean of a group of one set is that set, and is shown once
    assert sorted(shown) == sorted(row.value for row in rows if not (row.set == "mean" and row.group in single))
