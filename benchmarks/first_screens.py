"""What does a reader see first? Pictures of the first screens, for docs/images and for readers who get nothing else.

    python benchmarks/first_screens.py runs/demo docs/images/pages [--only leaderboard crossval]

The report is that of the runs, the leaderboard that of the published tables, the cross-validation one of made-up
numbers (a form, and no result). Each at 390, 1,200 and 1,400 pixels, dark, and as a printer gets it. Needs
``oodscope[dev]`` and chromium.
"""

import argparse
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from oodscope.leaderboard.published.table import published_standings
from oodscope.leaderboard.records.board import Board
from oodscope.leaderboard.site.render import write_site
from oodscope.report.page.attack import write_attack
from oodscope.report.page.crossval import write_crossval
from oodscope.report.page.generated import write_generated_study
from oodscope.report.page.page import write_report
from oodscope.results.opening import of_kind, open_runs
from oodscope.runs.attack.run import Attack
from oodscope.runs.generated.run import GeneratedStudy

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.browser import chromium as debian
from tests.runs.crossval.crossval_factory import make_table

VIEWS = {
    "390": (390, 844, "light"),
    "1200": (1200, 900, "light"),
    "1400": (1400, 1000, "light"),
    "dark": (1400, 1000, "dark"),
}
PAPER = (794, 1123)
"""A4 at 96 pixels an inch."""

ORDER = ("evaluation", "attack", "generated")


SOURCES = ("runs", "crossval", "leaderboard")
"""What pages are made from: the runs, made-up numbers, the published tables."""


def pages(runs: Path, folder: Path, only: Collection[str]) -> Iterator[tuple[str, Path]]:
    """Every page by name, of the sources that are asked for."""
    if "runs" in only:
        opened = sorted(open_runs([runs]), key=lambda run: (ORDER.index(run.kind), run.record.created))
        yield "report", write_report(opened, folder / "report.html")
        yield "attack", write_attack(of_kind(opened, Attack)[0], folder / "attack")
        yield "generated", write_generated_study(of_kind(opened, GeneratedStudy)[0], folder / "generated")
    if "crossval" in only:
        detectors = ("msp", "ebo", "knn", "vim", "react", "mds")
        table = make_table(detectors, ("auroc",), pairs=4, hold_outs=20)
        yield "crossval", write_crossval(table, folder / "crossval")[0]
    if "leaderboard" in only:
        site = write_site(Board(tuple(published_standings())), folder / "site")
        yield "leaderboard", site / "index.html"
        yield "leaderboard-table", site / "benchmarks" / "cifar10@openood-1.5" / "standard.html"


def shoot(browser: Browser, name: str, page_file: Path, folder: Path, views: list[str]) -> None:
    """One page in every view."""
    for view in views:
        paper = view == "print"
        width, height, scheme = (*PAPER, "light") if paper else VIEWS[view]
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.goto(page_file.resolve().as_uri())
        page.wait_for_timeout(1500)  # plots near the window are drawn
        if paper:
            page.evaluate("dispatchEvent(new Event('beforeprint'))")
            page.emulate_media(media="print")
        path = folder / f"{name}-{view}.png"
        page.screenshot(path=path)
        page.close()
        with Image.open(path) as picture:
            few = picture.convert("RGB").quantize(256, kmeans=2, dither=Image.Dither.NONE)
        few.save(path, optimize=True)
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    """Picture the runs that are named first into the folder that is named second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--only", nargs="*", choices=SOURCES, default=list(SOURCES))
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=debian.find(), args=list(debian.ARGUMENTS))
        for name, path in pages(given.runs, Path(folder), given.only):
            whole = name in ("report", "leaderboard", "crossval")
            shoot(browser, name, path, given.output, [*VIEWS, "print"] if whole else ["1400"])
        browser.close()


if __name__ == "__main__":
    main()
