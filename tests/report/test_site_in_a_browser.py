"""A browser opens the pages from a file: filters, order and rows come from the address, and nothing complains."""

import re
import shutil
import subprocess

import pytest

from oodscope.report.site import write_site
from tests.report.board_factory import make_board
from tests.report.reading import read

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = write_site(make_board(14), tmp_path_factory.mktemp("site") / "site")
    return folder / "benchmarks" / "cifar10@openood-1.5" / "standard.html"


def opened(page, tmp_path, address=""):
    """The document after its scripts ran, and what the console said."""
    command = [
        *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
        *("--disable-component-update", "--disable-sync", "--enable-logging=stderr", f"--user-data-dir={tmp_path}"),
        *("--dump-dom", page.as_uri() + address),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    complaints = [line for line in done.stderr.split("\n") if "CONSOLE" in line]
    dom = re.sub(r"<(link|meta|input|br)([^>]*)>", r"<\1\2>", done.stdout)
    return read(dom), complaints


def shown(page):
    """Ids of the rows that are seen, table by table."""
    tables = [s for s in page.all("section") if "data-track" in s.attributes and "hidden" not in s.attributes]
    return [[r.attributes["id"] for r in t.all("tbody")[0].all("tr") if "hidden" not in r.attributes] for t in tables]


def test_a_view_is_an_address(page, tmp_path):
    everything, complaints = opened(page, tmp_path / "a")
    assert complaints == []
    rows = [row for table in shown(everything) for row in table]
    view, complaints = opened(
        page, tmp_path / "b", "#tier=recomputed%2Cre-executed&track=post-hoc&sort=far.mean&q=icml"
    )
    assert complaints == []
    found = shown(view)
    assert 0 < sum(map(len, found)) < len(rows)
    for section in view.all("section"):
        if "data-track" in section.attributes and "hidden" not in section.attributes:
            assert section.attributes["data-track"] == "post-hoc"
            heads = [th.attributes.get("data-sort") for th in section.all("thead")[0].all("tr")[-1].all("th")]
            place = heads.index("far.mean")
            assert section.all("th", data_sort="far.mean")[0].attributes["aria-sort"] == "ascending"
            lines = [line for line in section.all("tbody")[0].all("tr") if "hidden" not in line.attributes]
            assert {line.attributes["data-tier"] for line in lines} <= {"recomputed", "re-executed"}
            cells = [(line.all("th") + line.all("td"))[place].attributes.get("data-value") for line in lines]
            values = [float(value) for value in cells if value is not None]
            assert values == sorted(values) and cells[: len(values)] == [repr(value) for value in values]
    checked = {box.attributes["value"] for box in view.all("input", type="checkbox")}
    assert {"recomputed", "re-executed", "post-hoc"} <= checked
    assert view.all("output")[0].text == f"{sum(map(len, found))} of {len(rows)} rows"


def test_words_that_nothing_fits(page, tmp_path):
    view, complaints = opened(page, tmp_path, "#q=no-such-method")
    assert complaints == [] and shown(view) == []
    assert "hidden" not in view.all("p", id="nothing")[0].attributes
