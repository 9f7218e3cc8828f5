"""What did the pages of 0.1 show wrongly, and do today's pages show it still? The same questions to both.

    python benchmarks/page_findings.py --old CHECKOUT_OF_0.1 --work FOLDER [--write docs/results/page-findings.md]

Both versions run their demo (40 images a class, one epoch: a classifier at chance, judges that cannot read, searches
that stop early) into FOLDER, and one browser asks both reports the same questions; what is in FOLDER already is not
made again. Both audit one folder of images that was trained on. Needs ``oodscope[dev]`` and chromium; 0.1 is commit
3cadf47.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from oodscope.base.files import write_text

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.browser import chromium as debian
from tests.report.test_section_a import MENDED

ROOT = Path(__file__).parent.parent
DEMO = ("demo", "--images-per-class", "40", "--epochs", "1")
WIDTH = 718
"""CSS pixels between the margins of an A4 page, about."""


@dataclass(frozen=True)
class Version:
    """One version of the package and what it made."""

    name: str
    source: Path
    work: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Its command line; its cache is its own."""
        return self.python("from oodscope.cli import main; main()", *arguments)

    def python(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A program that imports this version."""
        environment = os.environ | {"PYTHONPATH": str(self.source / "src"), "XDG_CACHE_HOME": str(self.work / "cache")}
        call = [sys.executable, "-c", code, *arguments]
        return subprocess.run(call, capture_output=True, text=True, env=environment, cwd=self.work, check=False)

    @property
    def report(self) -> Path:
        """The report of its demo, made where it is missing."""
        path = self.work / "demo" / "report.html"
        if not path.exists():
            self.work.mkdir(parents=True, exist_ok=True)
            done = self.run(*DEMO, "--output", str(path.parent))
            if not path.exists():
                raise SystemExit(f"{self.name}: the demo failed: {done.stderr[-500:]}")
        return path


@dataclass
class Asked:
    """A report as it lies on the disk and in a browser."""

    version: Version
    source: str
    browser: Browser

    def open(self, **options: object) -> Page:
        page = self.browser.new_page(**{"viewport": {"width": 1400, "height": 1000}, **options})  # type: ignore[arg-type]
        page.goto(self.version.report.resolve().as_uri())
        for _ in range(600):  # the page's policy does not let playwright put the question inside it
            if page.evaluate("typeof Plotly.newPlot === 'function'"):
                break
            page.wait_for_timeout(100)
        return page

    def section(self, name: str) -> str:
        """The words of one section."""
        found = re.search(rf'<section[^>]*id="{name}".*?</section>', self.source, re.S)
        return words(found[0]) if found else ""


def words(markup: str) -> str:
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", markup, flags=re.S)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text)))


def a1(asked: Asked) -> str:
    share = re.search(r"id_test: ([\d.]+) % keep their class", asked.source)
    row = re.search(r"judges see the class that an image came from.*?</tr>", asked.source, re.S)
    if share is None or row is None or float(share[1]) >= 80 or "yes" not in words(row[0]).split():
        return ""
    return f"judges that recognise {share[1]} % of the ID test images answer: {words(row[0]).strip()}"


def a2(asked: Asked) -> str:
    """Values that the scorecard marks, and the verdict states without mark or word."""
    doubted = set(re.findall(r"(\d\d\.\d\d?) ?\*", asked.section("scorecard")))
    verdict = asked.section("verdict")
    plain = [
        each for each in sorted(doubted) if re.search(rf"(?<!at most ){each}(?! ?\*| \(of that set)(?!\d)", verdict)
    ]
    return f"stands in the verdict without its mark: {', '.join(plain)}" if plain else ""


def a3(asked: Asked) -> str:
    """The worst set of the first leader that is named, beside the AUROCs of its row under the first two protocols."""
    verdict = asked.section("verdict")
    leader = re.search(r"small_cnn(?: \(\w+\))? (\w+) (?:default parameters )?\d+\.\d\d", verdict)
    if leader is None:
        return ""
    worst = re.search(r"worst set ?:? near_letters, AUROC (\d+\.\d\d)", verdict[leader.start() :])
    row = asked.section("scorecard").partition(f" {leader[1]} ")[2]
    values = [float(each) for each in re.findall(r"\d+\.\d\d", row)[:2]]
    if worst is None or min(values) >= float(worst[1]) - 0.005:
        return ""
    return f"{leader[1]}: worst set {worst[1]}, and {min(values):.2f} in the next column of its scorecard"


def a4(asked: Asked) -> str:
    page = asked.open()
    cost = page.evaluate(
        """() => Object.fromEntries(JSON.parse(document.querySelector("script[id^=figure-cost-standard]").textContent)
            .data.filter((trace) => trace.text).flatMap((trace) => trace.text.map((name, n) => [name, trace.x[n]])))"""
    )
    titles = page.locator(".plot-title").all_text_contents()
    page.close()
    cheaper = [each for each, value in cost.items() if value > cost["odin"]]
    twice = sorted({each for each in titles if titles.count(each) > 1 and "ost against" in each})
    said = [f"ODIN, with its passes, is drawn cheaper than {', '.join(cheaper)}"] if cheaper else []
    return "; ".join([*said, *(f"two plots are called {each!r}" for each in twice)])


def a5(asked: Asked) -> str:
    page = asked.open(color_scheme="dark")
    blank, drawn = page.evaluate(
        """() => { dispatchEvent(new Event("beforeprint"));
            const seen = [...document.querySelectorAll(".plot[data-figure]")].filter((e) => e.checkVisibility());
            return [seen.filter((e) => !e.querySelector(".main-svg")).length, seen.length]; }"""
    )
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": WIDTH, "height": 1000})
    pictures, cut, controls, ink = page.evaluate(
        """(width) => { const all = (s) => [...document.querySelectorAll(s)];
            const lost = all("*").filter((e) => e.checkVisibility())
                .filter((e) => getComputedStyle(e).backgroundImage.startsWith("url("))
                .filter((e) => getComputedStyle(e).printColorAdjust !== "exact").length;
            const cut = all(".scroll table").filter((e) => e.checkVisibility())
                .filter((e) => e.getBoundingClientRect().right > width + 2).length;
            const shown = all(".filter").filter((e) => e.checkVisibility()).length;
            const ink = getComputedStyle(document.body).color.match(/\\d+/g).map(Number);
            return [lost, cut, shown, Math.max(...ink)]; }""",
        WIDTH,
    )
    page.close()
    said = {
        f"{blank} of {drawn} plots are blank": blank,
        f"{pictures} pictures are left out": pictures,
        f"{cut} tables are cut": cut,
        f"{controls} filters are printed": controls,
        f"ink of a dark reader is as light as {ink} of 255": ink > 120,
    }
    return "; ".join(text for text, found in said.items() if found)


def a6(asked: Asked) -> str:
    page = asked.open(viewport={"width": 700, "height": 1000})
    page.wait_for_timeout(1000)
    silent, wider = page.evaluate(
        """() => { const boxes = [...document.querySelectorAll(".scroll")].filter((e) => e.checkVisibility())
                .filter((e) => e.scrollWidth > e.clientWidth + 1);
            return [boxes.filter((e) => e.tabIndex !== 0).length, boxes.length]; }"""
    )
    page.close()
    return f"at 700 pixels {silent} of {wider} tables hide columns that no key reaches" if silent else ""


def a7(asked: Asked) -> str:
    shared = re.search(r"\.legend \.d1 i, \.legend \.d2 i", asked.source)
    return f"one symbol for two dashes: `{shared[0]}`" if shared else ""


def a8(asked: Asked) -> str:
    page = asked.open()
    colours = page.evaluate(
        """() => [...document.querySelectorAll("script[id^=figure-]")]
            .flatMap((script) => JSON.parse(script.textContent).data)
            .filter((trace) => typeof trace.meta?.colour === "number")
            .map((trace) => [trace.name, trace.meta.colour])"""
    )
    page.close()
    own: dict[str, set[int]] = {}
    for name, place in colours:
        own.setdefault(name, set()).add(place)
    detectors = [name for name in ("knn", "vim", "msp", "ebo", "odin") if len(own.get(name, ())) > 1]
    return "; ".join(f"{name} has {len(own[name])} colours" for name in detectors)


def a9(asked: Asked) -> str:
    readme = re.sub(r"\s+", " ", (asked.version.source / "README.md").read_text(encoding="utf-8"))
    promise = re.search(r"[^.]*bit for bit[^.]*\.", readme)
    return f"README: {promise[0].strip()!r}" if promise and "machine" not in promise[0] else ""


def a10(asked: Asked) -> str:
    text = words(asked.source)
    accuracy = re.search(r"id_test (\d+\.\d+)", text)
    said = re.search(r"at chance|guess", text)
    if said or accuracy is None or float(accuracy[1]) > 10:
        return ""
    return f"accuracy {accuracy[1]} % over 20 classes, and no word of it"


def a11(asked: Asked) -> str:
    home = asked.version.work / "audit"
    if not home.exists():
        rng = np.random.default_rng(0)
        for number in range(45):
            image = Image.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8))
            for role in ("train", "test"):
                folder = home / role / f"class{number % 3}"
                folder.mkdir(parents=True, exist_ok=True)
                image.save(folder / f"{number}.png")
    code = (
        "import oodscope as oods; "
        f"bench = oods.own_benchmark(id_train={str(home / 'train')!r}, id_test={str(home / 'test')!r}, "
        "transform=oods.Preprocess(size=32, mean=(.5, .5, .5), std=(.2, .2, .2))); found = oods.audit(bench); "
        "print(*found.summary()); print(found.verdicts())"
    )
    done = asked.version.python(code)
    text = re.sub(r"\s+", " ", done.stdout)
    if not text:
        raise SystemExit(f"{asked.version.name}: the audit failed: {done.stderr[-500:]}")
    return (
        "" if re.search(r"45 of 45|100 ?%", text) else f"all test images were trained on, and it says: {text.strip()}"
    )


QUESTIONS: dict[str, Callable[[Asked], str]] = {
    "A1": a1,
    "A2": a2,
    "A3": a3,
    "A4": a4,
    "A5": a5,
    "A6": a6,
    "A7": a7,
    "A8": a8,
    "A9": a9,
    "A10": a10,
    "A11": a11,
}


def ask(version: Version, browser: Browser) -> dict[str, str]:
    """By finding: what shows that it is open; empty where nothing does."""
    asked = Asked(version, version.report.read_text(encoding="utf-8"), browser)
    return {name: question(asked) for name, question in QUESTIONS.items()}


def page_of(old: dict[str, str], new: dict[str, str]) -> str:
    """The results page."""
    titles = {name.split()[0]: name.split(maxsplit=1)[1] for name in MENDED} | {"A9": "a promise without its machine"}
    tests = {name.split()[0]: found for name, found in MENDED.items()}
    unseen, still = [name for name in old if not old[name]], [name for name in new if new[name]]
    answer = f"{len(old) - len(unseen)} of {len(old)} findings are seen in 0.1"
    answer += f" (not {', '.join(unseen)})" if unseen else ""
    answer += f"; today's pages show {', '.join(still)} still." if still else "; today's pages show none of them."
    lines = [
        "# What the pages of 0.1 showed wrongly\n",
        "**Question.** Is each finding on the pages of 0.1 seen there by a program, and gone from today's pages?\n",
        f"**Answer.** {answer}\n",
        "**Command.** `python benchmarks/page_findings.py --old CHECKOUT_OF_0.1 --work FOLDER`\n"
        "(0.1 is commit 3cadf47): both versions run their demo with 40 images a class and one epoch,\n"
        "and one headless chromium asks both reports the same questions.\n",
        f"**Date.** {datetime.now(UTC):%Y-%m-%d}; 2 cores, CPU.\n",
        "| finding | 0.1 | today | tests that keep it so |",
        "|---|---|---|---|",
    ]
    for name in old:
        cells = [each[name].replace("|", "\\|") or "not seen" for each in (old, new)]
        kept = "<br>".join(f"`{each}`" for each in tests.get(name, ())) or "README names the machine"
        lines.append(f"| {name} {titles[name]} | {cells[0]} | {cells[1]} | {kept} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Ask both versions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=debian.find(), args=list(debian.ARGUMENTS))
        old = ask(Version("0.1", options.old.resolve(), (options.work / "old").resolve()), browser)
        new = ask(Version("today", ROOT, (options.work / "new").resolve()), browser)
        browser.close()
    text = page_of(old, new)
    print(text)
    if options.write is not None:
        write_text(options.write, text)


if __name__ == "__main__":
    main()
