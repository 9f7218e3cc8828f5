"""The index of result pages: question, answer and date of each, read from the pages themselves."""

import re
from pathlib import Path

from sphinx.application import Sphinx

_HEAD = """# Results

Every page has its question, command, machine, date and table; the script of each lies in `benchmarks/`. An answer here
is the first sentence of the page's own.
"""
_TOPICS = {
    "Detectors and benchmarks": "detectors-|grids|cifar-|newest|openood|imagenet-smoke|reruns|corruptions|text|enc",
    "Worst cases and generated sets": "evg|attack|generated|raising|glyphs",
    "Training": "training-|regimes|heads|checkpoints|recipe|augment|train-",
    "Cross-validation and human-centric evaluation": "crossval|human-centric",
    "Intervals, tests and verdicts": "coverage|verdicts|statement|variance|audit|digits$|exposure",
    "Deployment and streams": "deploy|guarantees|serve|streams|monitor",
    "Speed and scale": "speed|scale|load|opening|large|build|endurance",
    "Safety, versions, release": "",
}
"""Headings of the index, and the names of pages below each; a page stands below the first that fits."""


def row(page: Path) -> str:
    """One line of the index: the title as a link and the question, the page's own answer in one sentence, its date."""
    text = page.read_text(encoding="utf-8")
    asked = re.search(r"\*{0,2}Question[.:]\*{0,2}\s+(.+?)(?:\n\s*\n|$)", text, re.S)
    title = text.partition("\n")[0].removeprefix("# ").strip()
    question = _asked(asked[1]) if asked else title
    answered = re.search(r"\*{0,2}Answer[.:]\*{0,2}\s+(.+?)(?:\n\s*\n|$)", text, re.S)
    dates = re.findall(r"20\d\d-\d\d-\d\d", text)
    answer = _first_sentence(answered[1]) if answered else f"see the page ({title})"
    end = "" if title.endswith("?") else "."
    asks = f"{end} {_cell(question)}" if asked else ""
    return f"| [{_cell(title)}]({page.name}){asks} | {_cell(answer)} | {max(dates, default='')} |"


def write_index(folder: Path) -> Path:
    """``index.md`` beside the result pages."""
    pages = sorted(page for page in folder.glob("*.md") if page.name != "index.md")
    below = sorted(page for page in folder.rglob("*.md") if page.parent != folder)
    names = [str(page.relative_to(folder).with_suffix("")) for page in [*pages, *below]]
    listed = "\n".join(f"{name.replace('/', ': ')} <{name}>" if "/" in name else name for name in names)
    index = folder / "index.md"
    below_topics = "".join(_section(topic, [page for page in pages if _topic(page) == topic]) for topic in _TOPICS)
    text = f"{_HEAD}{below_topics}\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    if not index.is_file() or index.read_text(encoding="utf-8") != text:
        index.write_text(text, encoding="utf-8")
    return index


def _topic(page: Path) -> str:
    return next(topic for topic, names in _TOPICS.items() if re.search(names, page.stem))


def _section(topic: str, pages: list[Path]) -> str:
    rows = "\n".join(map(row, pages))
    table = f"| question | answer | date |\n|---|---|---|\n{rows}\n"
    return f"\n## {topic}\n\n:::{{container}} answers\n\n{table}\n:::\n" if pages else ""


def _asked(text: str) -> str:
    """The first sentence that asks; a page may say first what it is about."""
    flat = re.sub(r"\s+", " ", text).strip()
    asking = [each for each in re.split(r"(?<=[.?!]) (?=[A-Z])", flat) if each.endswith("?")]
    return asking[0] if asking else _first_sentence(flat)


def _first_sentence(text: str) -> str:
    flat = re.sub(r"\s+", " ", text).strip()
    ended = re.match(r".+?[.?!](?= [A-Z]|$)", flat)
    return ended[0] if ended else flat


def _cell(text: str) -> str:
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("|", "\\|")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the index before the pages are read."""
    app.connect("builder-inited", lambda app: write_index(Path(app.srcdir) / "results"), priority=100)
    return {"parallel_read_safe": True}
