"""What holds for every page, wide and narrow, light and dark."""

from pathlib import Path

import pytest

from .made_pages import PAGES

pytestmark = pytest.mark.browser

LOOKS = (Path(__file__).parent / "looks.js").read_text(encoding="utf-8")
NAMED = {"button", "link", "checkbox", "radio", "textbox", "searchbox", "combobox", "slider", "DisclosureTriangle"}
SIDEWAYS = "[document.scrollingElement.scrollWidth, document.scrollingElement.clientWidth]"


def open_all(page):
    """Everything that can be unfolded, unfolded."""
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("name", PAGES)
def test_it_fits_its_window_and_shows_its_pictures(name, width, made, browser):
    page = browser.open(made(name), width)
    for _ in range(2):  # folded, then unfolded
        whole, window = page.evaluate(SIDEWAYS)
        assert whole <= window, f"the page is {whole - window} px wider than its window"
        open_all(page)
    broken = "[...document.images].filter((each) => !each.complete || !each.naturalWidth).map((each) => each.alt)"
    assert page.evaluate(broken) == []


@pytest.mark.parametrize("name", PAGES)
def test_everyone_can_read_it(name, made, browser):
    page = browser.open(made(name))
    open_all(page)
    backgrounds = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        looks = page.evaluate(LOOKS)
        assert looks["texts"] > 50
        assert looks["findings"] == [], scheme
        backgrounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert backgrounds["light"] != backgrounds["dark"]


@pytest.mark.parametrize("name", PAGES)
def test_every_control_and_picture_has_a_name(name, made, browser):
    page = browser.open(made(name))
    open_all(page)
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in tree if not node["ignored"]]
    assert "link" in roles
    for node in tree:
        if not node["ignored"] and node["role"]["value"] in {*NAMED, "image", "img"}:
            assert node.get("name", {}).get("value", "").strip(), node


@pytest.mark.parametrize("name", PAGES)
def test_it_prints_its_content_and_not_its_controls(name, made, browser):
    page = browser.open(made(name), width=794)  # A4
    page.emulate_media(media="print")
    assert not page.locator("nav").first.is_visible()
    assert page.locator("h1").is_visible()
    whole, window = page.evaluate(SIDEWAYS)
    assert whole <= window
