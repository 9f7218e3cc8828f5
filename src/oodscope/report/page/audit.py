"""The page of an audit: pairs of pictures side by side, to be judged by eye."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from oodscope.base.files import write_text
from oodscope.data.benchmark import Benchmark
from oodscope.report.page.templating import data_uri, render_page
from oodscope.runs.audit.run import VERDICTS, Audit, ImagePair

_SHOWN = 60
"""Pairs shown of each pair of sets; all of them are in the tables beside the page."""


@dataclass(frozen=True)
class Thumbnail:
    """A finding with its pictures, as data that a browser shows."""

    pair: ImagePair
    first: str
    second: str


@dataclass(frozen=True)
class Gallery:
    """The findings of one kind between two sets."""

    verdict: str
    kind: str
    first: str
    second: str
    count: int
    thumbnails: list[Thumbnail]


def write_audit(audit: Audit, benchmark: Benchmark, folder: Path | str) -> Path:
    """Write ``audit.html``, ``audit.json``, ``images.csv`` and ``classes.csv`` to a folder; the path of the page.

    Parameters
    ----------
    benchmark : the audited one, whose pictures the page shows.
    """
    path = audit.save(folder) / "audit.html"
    page = render_page("audit.html", audit=audit, verdicts=VERDICTS, galleries=list(_galleries(audit, benchmark)))
    write_text(path, page)
    return path


def _galleries(audit: Audit, benchmark: Benchmark) -> Iterator[Gallery]:
    sets = {images.name: images for _, images in benchmark.members()}
    keys = dict.fromkeys((pair.verdict, pair.kind, pair.first.set, pair.second.set) for pair in audit.pairs)
    for key in keys:
        own = [pair for pair in audit.pairs if (pair.verdict, pair.kind, pair.first.set, pair.second.set) == key]
        thumbnails = [
            Thumbnail(pair, *(data_uri(sets[ref.set].images([ref.row])[0]) for ref in (pair.first, pair.second)))
            for pair in own[:_SHOWN]
        ]
        yield Gallery(*key, len(own), thumbnails)
