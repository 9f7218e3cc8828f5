"""The documentation site as readers use it: wide and narrow, light and dark, searched, from a disk."""

import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.browser.test_every_page import SIDEWAYS
from tests.browser.test_site_in_use import QuietHandler

pytestmark = pytest.mark.browser

DOCS = Path(__file__).parents[2] / "docs"
MADE = "_build", "gallery", "reference"


def build(source, out, *settings):
    """The site of a folder; tutorials are shown, not run."""
    pytest.importorskip("furo", reason="the site needs the extra docs")
    command = [sys.executable, "-m", "sphinx", "-q", *settings, "-b", "html", str(source), str(out)]
    done = subprocess.run(command, env=os.environ | {"OODSCOPE_DOCS_RUN": "0"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return out


@pytest.fixture(scope="module")
def few_pages(tmp_path_factory):
    """The pages that people wrote, without those that are made: seconds instead of a minute."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns(*MADE, "results", "tutorials"))
    left_out = {"reference", "results", "sphinx_gallery.gen_gallery"}
    conf = folder / "docs" / "conf.py"
    conf.write_text(
        f"{conf.read_text('utf-8')}\nextensions = [each for each in extensions if each not in {left_out}]\n"
    )
    return build(folder / "docs", folder / "html")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The whole site; ``OODSCOPE_SITE`` names one that is built."""
    built = os.environ.get("OODSCOPE_SITE")
    return Path(built) if built else build(DOCS, tmp_path_factory.mktemp("whole"), "-W")


class _Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.targets, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.targets += [given[key] for key in ("href", "src") if given.get(key)]
        if given.get("id"):
            self.ids.add(given["id"])


def dead_links(site):
    """Every link to a file or a heading that is not there, and every source on another host."""
    pages = {page.resolve(): _Links(page.read_text("utf-8")) for page in site.rglob("*.html")}
    dead = []
    for page, links in pages.items():
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme:
                continue
            place = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            wrong_heading = parts.fragment and place in pages and unquote(parts.fragment) not in pages[place].ids
            if not place.is_file() or wrong_heading:
                dead.append(f"{page.relative_to(site.resolve())}: {target}")
    return dead, len(pages)


@contextmanager
def served(site):
    """The address of a site; a search asks for the pages that it found, which no browser lets it do from a disk."""
    handler = partial(QuietHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def look(browser, site, names):
    """Open pages from a disk in three ways; the fixture complains of errors and of requests to other hosts."""
    for name in names:
        for width, scheme in ((390, "light"), (1400, "light"), (1400, "dark")):
            page = browser.open(site / name, width=width, scheme=scheme)
            assert page.locator("h1").first.is_visible(), name
            assert page.evaluate(SIDEWAYS) <= 0, f"{name} at {width} px"
            dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, re.findall(r"\d+", dark)[:3])) < 200) == (scheme == "dark"), (name, dark)
            page.close()


def search(browser, site, word):
    """What the search finds, by title."""
    with served(site) as address:
        page = browser.open(f"{address}/search.html?q={word}")
        page.locator("#search-results li p.context").first.wait_for()
        return page.locator("#search-results li a").all_inner_texts()


def test_written_pages_are_read_and_searched(browser, few_pages):
    look(browser, few_pages, ["index.html", "howto/threshold.html", "theory/conformal.html"])
    assert "Conformal thresholds" in search(browser, few_pages, "exchangeable")


@pytest.mark.soak
def test_the_whole_site_is_read_and_searched(browser, whole):
    names = ["index.html", "gallery/01_first_evaluation.html", "gallery/index.html", "results/index.html"]
    names += ["reference/detectors/knn.html", "reference/detectors/index.html", "reference/api.html", "guide.html"]
    names += ["reference/commands.html", "reference/metrics/index.html", "reference/benchmarks/cifar10.html"]
    look(browser, whole, names)
    assert "knn" in search(browser, whole, "neighbour") or "knn" in search(browser, whole, "knn")
    dead, pages = dead_links(whole)
    assert pages > 300 and dead == []
