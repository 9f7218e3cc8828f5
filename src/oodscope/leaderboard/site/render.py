"""From a board to a folder of pages: a pure function, so that a server can answer with the same pages."""

import logging
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jinja2 import Environment

from oodscope.base.errors import StorageError
from oodscope.base.files import storage_errors
from oodscope.leaderboard.published.table import published_tables
from oodscope.leaderboard.records.board import Board
from oodscope.leaderboard.records.folder import SCORES
from oodscope.leaderboard.records.standing import Standing
from oodscope.leaderboard.site.addresses import (
    REPORTED_PAGE,
    anchor,
    entry_file,
    entry_files,
    method_page,
    model_page,
    root_of,
    scores_file,
    standing_page,
    table_data,
)
from oodscope.leaderboard.site.downloads import as_csv, as_json, differences_json, tidy_rows
from oodscope.leaderboard.site.front import front_page
from oodscope.leaderboard.site.methods import method_views
from oodscope.leaderboard.site.models import model_views
from oodscope.leaderboard.site.sheets import Ranks
from oodscope.leaderboard.site.tables import TablePages, table_pages
from oodscope.leaderboard.site.templating import site_environment
from oodscope.leaderboard.site.words import TRACKS
from oodscope.report.page.templating import EVERYWHERE, own_scripts

Page = tuple[str, str]
"""Where it lies, from the root of the site, and its text."""

_MARK = "data/differences.json"
"""A file that every site has: a folder without it was not made by us and is left alone."""

_LOG = logging.getLogger("oodscope.leaderboard")


@dataclass(frozen=True)
class SoundPages:
    """The pages of all standings that pages can be made of, the board of these, and the others with the reason."""

    board: Board
    pages: dict[str, str]
    refused: Mapping[str, str]


def sound_pages(board: Board, *, scores: bool = False, live: bool = False) -> SoundPages:
    """Every file of the site, whatever an entry holds: one that no page can be made with costs only itself.

    Nothing of the kind is known. If there is one, it is found by halves, so that a board of thousands is back after
    some dozen attempts; rows of published tables come with the package and are not doubted.
    """
    refused: dict[str, str] = {}
    curated = [each for each in board.standings if each.curated]

    def attempt(standings: Sequence[Standing]) -> dict[str, str]:
        return dict(render_pages(replace(board, standings=(*standings, *curated)), scores=scores, live=live))

    def sound(base: list[Standing], more: list[Standing]) -> list[Standing]:
        """``base``, and those of ``more`` with which it can still be rendered."""
        try:
            attempt([*base, *more])
        except Exception as error:
            if len(more) == 1:
                _LOG.exception("no page can be made with entry %s", more[0].entry.id)
                refused[more[0].entry.id] = f"no page can be made with it ({type(error).__name__}: {error})"
                return base
            half = len(more) // 2
            return sound(sound(base, more[:half]), more[half:])
        return [*base, *more]

    others = [each for each in board.standings if not each.curated]
    try:
        return SoundPages(board, attempt(others), refused)
    except Exception:
        if not others:
            raise
        kept = sound([], others)
    return SoundPages(replace(board, standings=(*kept, *curated)), attempt(kept), refused)


def write_site(board: Board, folder: Path | str, *, scores: Path | str | None = None) -> Path:
    """Make the pages of a board and write them to ``folder``; see :func:`write_pages`."""
    return write_pages(sound_pages(board, scores=scores is not None), folder, scores=scores)


def write_pages(found: SoundPages, folder: Path | str, *, scores: Path | str | None = None) -> Path:
    """Write a site to ``folder``; a site that was there before is replaced as a whole.

    Everything is written beside it first, so a reader sees the old site or the new one, and no page of an entry that
    is no longer there stays behind.

    Parameters
    ----------
    scores : the folder of the entries, where their scores are to lie beside their records.
    """
    folder = Path(folder).resolve()
    if folder.exists() and not (folder / _MARK).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise StorageError(f"{folder} is neither empty nor a site of ours; choose another folder")
    with storage_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            site = fresh / "site"
            for path, text in found.pages.items():
                target = site / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8", newline="\n")
            if scores is not None:
                _add_scores(found.board, Path(scores), site)
            if folder.exists():
                folder.rename(fresh / "old")
            site.rename(folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return folder


def render_pages(board: Board, *, scores: bool = False, live: bool = False) -> Iterator[Page]:
    """Every file of the site: where it lies and what it says.

    Parameters
    ----------
    scores : whether pages may link to the scores of entries; whoever serves them must have them.
    live : as a server hands them out, beside pages of runs.
    """
    environment = site_environment(live=live)
    yield from _shared(environment)
    apart = [each for each in board.standings if each.apart]
    for standing in board.standings:
        yield entry_file(standing.entry.id), standing.entry.model_dump_json(indent=1) + "\n"
    # on no page but their own: without scores there is nothing to check, so nothing of them stands beside what was
    board = replace(board, standings=tuple(each for each in board.standings if not each.apart))
    yield REPORTED_PAGE, _reported(environment, apart, scores)
    found = list(table_pages(board))
    ranks = {key: rank for each in found for key, rank in each.ranks().items()}
    yield "index.html", front_page(environment, board, found)
    about = environment.get_template("site/about.html")
    yield "about.html", about.render(root="", here="about", tables=published_tables())
    for each in found:
        yield from each.render(environment)
    yield from _methods(environment, board, ranks, scores)
    yield from _models(environment, board, ranks)
    yield from _downloads(environment, board, apart, found, ranks, scores)


def _add_scores(board: Board, source: Path, site: Path) -> None:
    """The scores beside the records: linked where the file system can, copied elsewhere."""
    for standing in board.standings:
        name = standing.entry.id
        if standing.entry.scores is not None:
            given, wanted = source / name / SCORES, site / scores_file(name)
            try:
                wanted.hardlink_to(given)
            except (OSError, NotImplementedError):
                shutil.copyfile(given, wanted)


def _shared(environment: Environment) -> Iterator[Page]:
    look = [environment.get_template(name).render() for name in ("theme.css", "report.css", "site/site.css")]
    yield "site.css", "\n".join(look)
    yield from own_scripts(*EVERYWHERE).items()
    for name in ("site.js", "icon.svg"):
        yield name, environment.get_template(f"site/{name}").render() + "\n"


def _methods(environment: Environment, board: Board, ranks: Ranks, scores: bool) -> Iterator[Page]:
    views = method_views(board, ranks, scores)
    template = environment.get_template("site/method.html")
    rows = []
    for key, view in views.items():
        path = method_page(key)
        yield path, template.render(root=root_of(path), here="methods", method=view)
        papers = [paper for paper in view.papers if paper.title]
        texts = (
            ", ".join(TRACKS[track][0] for track in view.tracks),
            papers[0].title if papers else "",
            " ".join(str(part) for part in (papers[0].venue, papers[0].year) if part) if papers else "",
        )
        rows.append(_listed(path, view.name, texts, len(view.standings)))
    words = "Every method with all its entries, printed and measured, under any protocol."
    yield _listing(environment, "methods", words, ("track", "paper", "venue"), rows)


def _models(environment: Environment, board: Board, ranks: Ranks) -> Iterator[Page]:
    views = model_views(board, ranks)
    template = environment.get_template("site/model.html")
    rows = []
    for name, view in views.items():
        path = model_page(name)
        yield path, template.render(root=root_of(path), here="models", model=view)
        rows.append(_listed(path, name, (view.architecture, view.recipe), len(view.standings)))
    words = "Every network with all that was measured on it."
    yield _listing(environment, "models", words, ("architecture", "recipe"), rows)


def _listed(path: str, name: str, texts: Sequence[str], entries: int) -> dict[str, Any]:
    """One row of a list of pages."""
    page = Path(path)
    return {"anchor": f"m-{page.stem}", "name": name, "page": page.name, "texts": texts, "entries": entries}


def _listing(
    environment: Environment, folder: str, words: str, heads: Sequence[str], rows: Sequence[dict[str, Any]]
) -> Page:
    """The page that lists the others of its folder; ``heads`` stand above the texts of the rows."""
    template = environment.get_template("site/methods.html")
    title = folder.capitalize()
    return (
        f"{folder}/index.html",
        template.render(root="../", here=folder, title=title, words=words, heads=heads, rows=rows),
    )


def _reported(environment: Environment, apart: Sequence[Standing], scores: bool) -> str:
    """The page of printed numbers that were submitted without scores, newest first."""
    entries = [
        {"standing": each, "anchor": anchor(each.entry.id), "files": entry_files(each.entry, scores)}
        for each in sorted(apart, key=lambda each: (each.dated, each.entry.id), reverse=True)
    ]
    template = environment.get_template("site/reported.html")
    return template.render(root=root_of(REPORTED_PAGE), here="reported", entries=entries)


def _downloads(
    environment: Environment,
    board: Board,
    apart: Sequence[Standing],
    found: list[TablePages],
    ranks: Ranks,
    scores: bool,
) -> Iterator[Page]:
    everything = list(tidy_rows(board.standings, ranks))
    tables = [("everything", everything, {"csv": "data/everything.csv", "json": "data/everything.json"})]
    if apart:
        paths = {ending: f"data/reported.{ending}" for ending in ("csv", "json")}
        tables.append(("submitted without scores: reported numbers only", list(tidy_rows(apart, {})), paths))
    for each in found:
        own = [row for row in everything if (row["benchmark"], row["protocol"]) == (each.benchmark, each.protocol)]
        paths = {ending: table_data(each.benchmark, each.protocol, ending) for ending in ("csv", "json")}
        tables.append((f"{each.benchmark}, {each.protocol}", own, paths))
    for _, rows, paths in tables:
        yield paths["csv"], as_csv(rows)
        yield paths["json"], as_json(rows)
    yield _MARK, differences_json(board)
    files = [
        {"name": name, "rows": len(rows), "files": {ending.upper(): path for ending, path in paths.items()}}
        for name, rows, paths in tables
    ]
    n = sum(len(each.differences) for each in board.standings) + len(board.errata)
    files.append({"name": "printed beside measured, and errata", "rows": n, "files": {"JSON": _MARK}})
    entries = [
        {
            "id": each.entry.id,
            "anchor": anchor(each.entry.id),
            "page": standing_page(each),
            "method": each.entry.method,
            "benchmark": str(each.entry.benchmark),
            "tier": each.tier,
            "files": entry_files(each.entry, scores),
        }
        for each in (*board.standings, *apart)
    ]
    template = environment.get_template("site/downloads.html")
    yield "downloads.html", template.render(root="", here="downloads", files=files, entries=entries)
