"""What do the pages look like? Pictures of a report and of a leaderboard's site, wide and narrow, light and dark.

    python benchmarks/screenshots.py OUT --runs runs/demo [--leaderboard FOLDER]

Without ``--leaderboard`` the site is that of a board made up for tests. Needs ``oodscope[dev]`` and chromium.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from oodscope.leaderboard.site.render import write_site
from oodscope.report.page.page import write_report
from oodscope.results.opening import open_runs

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.browser import chromium as debian
from tests.leaderboard.board_factory import make_board

WIDTHS = {1400: 900, 390: 844}
TALLEST = 2600
"""Pixels of one picture; a longer page becomes several."""


def pages(folder: Path, runs: Path, leaderboard: Path | None) -> Iterator[tuple[str, Path]]:
    """Everything worth looking at, by name."""
    yield "report", write_report(open_runs([runs]), folder / "report.html")
    for path in sorted(runs.rglob("*.html")):
        yield f"run-{path.parent.name}-{path.stem}", path
    if leaderboard is None:
        board = make_board()
    else:
        from oodscope.leaderboard.verify.verifying import verify_all

        board = verify_all(leaderboard)
    site = write_site(board, folder / "site")
    chosen = ("index.html", "benchmarks/*/standard.html", "methods/knn.html", "models/[!i]*.html", "downloads.html")
    for pattern in chosen:
        yield f"site-{pattern.split('/')[0].removesuffix('.html')}", min(site.glob(pattern))


def draw_all(page: Page) -> None:
    """Plots are drawn when a reader comes near; here all are wanted, as on paper."""
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for plot in page.locator(".plot[data-figure]").all():
        if plot.is_visible():
            plot.locator(".main-svg").first.wait_for(state="attached")


def shoot(browser: Browser, name: str, path: Path, folder: Path) -> None:
    """One page at every width and in both colour schemes, in pieces that can be looked at."""
    for width, height in WIDTHS.items():
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(path.resolve().as_uri())
            draw_all(page)
            whole = page.evaluate("document.documentElement.scrollHeight")
            for number, top in enumerate(range(0, whole, TALLEST)):
                clip = {"x": 0, "y": top, "width": width, "height": min(TALLEST, whole - top)}
                picture = folder / f"{name}-{width}-{scheme}-{number}.png"
                page.screenshot(path=picture, full_page=True, clip=clip)
            print(f"{name} {width} {scheme}: {whole} px")
            page.close()


def for_readme(browser: Browser, report: Path, target: Path) -> None:
    """The report down to the end of its scorecard, in 128 colours."""
    from PIL import Image

    page = browser.new_page(viewport={"width": 1280, "height": 1600})
    page.goto(report.resolve().as_uri())
    card = page.locator("#scorecard .scroll").bounding_box()
    page.screenshot(path=target, clip={"x": 0, "y": 0, "width": 1280, "height": card["y"] + card["height"] + 24})
    page.close()
    with Image.open(target) as picture:
        few = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    few.save(target, optimize=True)
    print(f"{target}: {target.stat().st_size / 1000:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--leaderboard", type=Path, help="a folder of entries")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=debian.find(), args=list(debian.ARGUMENTS))
        for name, path in pages(asked.out / "pages", asked.runs, asked.leaderboard):
            shoot(browser, name, path, asked.out)
        for_readme(browser, asked.out / "pages" / "report.html", asked.out / "readme.png")
        browser.close()


if __name__ == "__main__":
    main()
