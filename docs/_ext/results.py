"""The index of result pages: question, answer and date of each, read from the pages themselves."""

import re
from pathlib import Path

from sphinx.application import Sphinx

_HEAD = """# Results

Every page has its question, command, machine, date and table; the script of each lies in `benchmarks/`.

| question | answer | date |
|---|---|---|
"""


def row(page: Path) -> str:
    """One line of the index: the question as a link, the page's own answer in one sentence, and its date."""
    text = page.read_text(encoding="utf-8")
    asked = re.search(r"\*{0,2}Question[.:]\*{0,2}\s+(.+?)(?:\n\s*\n|$)", text, re.S)
    title = text.partition("\n")[0].removeprefix("# ").strip()
    question = _first_sentence(asked[1]) if asked else title
    answered = re.search(r"\*{0,2}Answer[.:]\*{0,2}\s+(.+?)(?:\n\s*\n|$)", text, re.S)
    dates = re.findall(r"20\d\d-\d\d-\d\d", text)
    answer = _first_sentence(answered[1]) if answered else f"see the page ({title})"
    return f"| [{_cell(question)}]({page.name}) | {_cell(answer)} | {max(dates, default='')} |"


def write_index(folder: Path) -> Path:
    """``index.md`` beside the result pages."""
    pages = sorted(page for page in folder.glob("*.md") if page.name != "index.md")
    below = sorted(page for page in folder.rglob("*.md") if page.parent != folder)
    names = [str(page.relative_to(folder).with_suffix("")) for page in [*pages, *below]]
    listed = "\n".join(f"{name.replace('/', ': ')} <{name}>" if "/" in name else name for name in names)
    index = folder / "index.md"
    text = f"{_HEAD}{chr(10).join(map(row, pages))}\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    if not index.is_file() or index.read_text(encoding="utf-8") != text:
        index.write_text(text, encoding="utf-8")
    return index


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
