"""What holds for every page, wide and narrow, light and dark, on a screen and on paper."""

from pathlib import Path

import pytest

from tests.browser.made_pages import PAGES

pytestmark = pytest.mark.browser

LOOKS = (Path(__file__).parent / "looks.js").read_text(encoding="utf-8")
NAMED = {
    "button",
    "link",
    "checkbox",
    "radio",
    "textbox",
    "searchbox",
    "combobox",
    "DisclosureTriangle",
    "image",
    "img",
    "group",  # a plot and all its parts
}
A4 = 718
"""CSS pixels between the margins of a page, about."""
SIDEWAYS = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
BROKEN = """async () => {
  const address = (element) => getComputedStyle(element).backgroundImage.slice(5, -2);
  const told = [...document.querySelectorAll(".seen")].map(address);
  const loaded = (source) => new Promise((go) => {
    const image = new Image();
    image.onload = () => go(image.naturalWidth > 0);
    image.onerror = () => go(false);
    image.src = source;
  });
  const sources = [...new Set([...told, ...[...document.images].map((each) => each.src)])];
  const fine = await Promise.all(sources.map(loaded));
  return { broken: sources.filter((_, place) => !fine[place]), shown: sources.length };
}"""
PICTURED = {"report": 100, "attack": 20, "generated": 30, "audit": 10}


def unfold(page):
    """Everything that can be opened, opened, and every plot drawn."""
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    page.evaluate("for (const name of ['beforeprint', 'afterprint']) dispatchEvent(new Event(name))")
    for plot in page.locator(".plot[data-figure]").all():
        plot.locator(".main-svg").first.wait_for(state="attached")


def findings(page, tries=20):
    """What does not look right, once plots have had time to be drawn in other colours."""
    for _ in range(tries):
        looks = page.evaluate(LOOKS)
        assert looks["texts"] > 20
        if not looks["findings"]:
            break
        page.evaluate("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
    return looks["findings"]


def upwards(node, parents):
    """A node of the accessibility tree and all that it lies in: the parts of a named plot need no names."""
    while node is not None:
        yield node
        node = parents[node]


def folding(tree, parents):
    """The groups that are ``<details>``: the summary speaks for each, and the summary needs a name itself."""
    groups = {node["nodeId"] for node in tree if not node["ignored"] and node["role"]["value"] == "group"}
    ignored = {node["nodeId"] for node in tree if node["ignored"]}
    summaries = [node["nodeId"] for node in tree if node.get("role", {}).get("value") == "DisclosureTriangle"]
    holders = (next(each for each in upwards(parents[node], parents) if each not in ignored) for node in summaries)
    return groups & set(holders)


@pytest.mark.parametrize("name", PAGES)
def test_it_fits_a_telephone_and_paper(name, made, browser):
    page = browser.open(made(name), width=390)
    assert page.evaluate(SIDEWAYS) <= 0, "folded, at 390 px"
    unfold(page)
    assert page.evaluate(SIDEWAYS) <= 0, "unfolded, at 390 px"
    pictures = page.evaluate(BROKEN)
    assert pictures["broken"] == []
    assert pictures["shown"] >= PICTURED.get(name, 0)
    page.set_viewport_size({"width": A4, "height": 1000})
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # tables shrink to the paper
    page.emulate_media(media="print")
    assert page.evaluate(SIDEWAYS) <= 0, "on paper"
    assert page.locator("h1").is_visible()
    assert not any(each.is_visible() for each in page.locator("nav, button").all())


@pytest.mark.parametrize("name", PAGES)
def test_everyone_can_read_it(name, made, browser):
    page = browser.open(made(name))
    unfold(page)
    assert page.evaluate(SIDEWAYS) <= 0, "unfolded, at 1400 px"
    backgrounds = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert findings(page) == [], scheme
        backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(backgrounds) == 2
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    known = [node for node in tree if not node["ignored"] and node["role"]["value"] in NAMED]
    assert any(node["role"]["value"] == "link" for node in known)
    named = {node["nodeId"] for node in known if node.get("name", {}).get("value", "").strip()}
    parents = {node["nodeId"]: node.get("parentId") for node in tree}
    folded = folding(tree, parents)
    known = [node for node in known if node["nodeId"] not in folded]
    assert [node["role"]["value"] for node in known if not named & set(upwards(node["nodeId"], parents))] == []


@pytest.mark.parametrize("name", PAGES)
def test_the_reader_may_choose_light_or_dark(name, made, browser):
    page = browser.open(made(name), width=390, scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    button = page.get_by_role("button", name="light and dark")
    button.click()
    dark = page.evaluate(background)
    assert dark != light
    # a browser with too few cores may itself forget what a page wrote: what the page wrote is there when it comes back
    page.add_init_script(f"Object.assign(localStorage, {page.evaluate('JSON.stringify(localStorage)')})")
    page.reload()
    assert page.evaluate(background) == dark, "the choice is kept"
    button.click()
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(background) == light, "the choice goes before the system's"
