"""PublishedTable: the numbers of a paper's table, typed in, with where they stand and how sure we are of them."""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import Field

from oodscope.base.config import StrictModel, parse
from oodscope.leaderboard.records.entry import Entry, Track
from oodscope.leaderboard.records.records import BenchmarkUse, DetectorUse, ModelUse, Publication, Reported, Search
from oodscope.leaderboard.records.standing import Standing
from oodscope.metrics.metric import MEAN, Tuning

Number = list[float] | None
"""A value in percent and, where there were several runs, its standard deviation; ``None`` where none was printed."""


class CitedPaper(StrictModel):
    """A publication by its authors, written out because BibTeX wants them."""

    title: str
    authors: list[str] = Field(min_length=1)
    venue: str
    year: int
    url: str = ""

    def bibtex(self) -> str:
        """An entry for a bibliography, its key made of surname, year and the title's first long word."""
        surname = re.sub(r"\W", "", self.authors[0].split()[-1].lower())
        word = next(word for word in re.findall(r"[a-z]+", self.title.lower()) if len(word) > 3)
        preprint = self.venue.removeprefix("arXiv ")
        if preprint != self.venue:
            kind, place = "article", f"  journal = {{arXiv preprint arXiv:{preprint}}},"
        elif self.venue == "TPAMI":
            kind, place = "article", "  journal = {IEEE Transactions on Pattern Analysis and Machine Intelligence},"
        else:
            kind, place = "inproceedings", f"  booktitle = {{{self.venue}}},"
        lines = [
            f"@{kind}{{{surname}{self.year}{word},",
            f"  title = {{{{{self.title}}}}},",
            f"  author = {{{' and '.join(self.authors)}}},",
            place,
            f"  year = {{{self.year}}}",
        ]
        return "\n".join([*lines, "}"])


class PublishedBenchmark(StrictModel):
    """One block of columns: the benchmark and the network that everything in it ran on."""

    version: str
    title: str
    architecture: str
    runs: int = Field(ge=1)


class PublishedMethod(StrictModel):
    """One line of the table.

    Parameters
    ----------
    method : the name under which it stands beside measured entries; ``printed`` is the paper's.
    detector : its name in the registry, empty if it is not there.
    flag : why the line should not be trusted, if that is known.
    results : by benchmark, one number per column.
    """

    method: str
    printed: str
    detector: str
    track: Track
    tuning: Tuning
    flag: str = ""
    paper: CitedPaper
    results: dict[str, list[Number]]


class Doubt(StrictModel):
    """A cell that two renderings of the paper print differently, and the reading that was taken."""

    method: str
    benchmark: str
    column: str
    rendering: list[float]
    taken: list[float]


class PublishedTable(StrictModel):
    """A table as it was printed. Nothing in it was recomputed, and nothing in it is ever ranked.

    Parameters
    ----------
    mark : what every page says of its numbers.
    date : when it was published.
    cited : how its rows name their source.
    protocol, metric : what its numbers measure; the column ``accuracy`` is that of the classifier on ID images.
    """

    name: str
    mark: Literal["reported, not recomputed"]
    date: str
    source: CitedPaper
    cited: str
    protocol: str
    metric: str
    notes: list[str]
    columns: list[str]
    benchmarks: dict[str, PublishedBenchmark]
    methods: list[PublishedMethod]
    doubtful: list[Doubt]

    def standings(self) -> list[Standing]:
        """One standing of tier ``reported`` for each method and benchmark with a number."""
        return [self._standing(method, name) for method in self.methods for name in method.results]

    def _standing(self, method: PublishedMethod, benchmark: str) -> Standing:
        where = self.benchmarks[benchmark]
        trained = "cross-entropy" if method.track == "post-hoc" else method.printed
        network = f"OpenOOD {where.title} {where.architecture}"
        paper = method.paper
        known: dict[str, Any] = {"name": method.detector, "id": method.detector} if method.detector else {}
        entry = Entry(
            schema_version=1,
            id=f"{self.name}-{benchmark}-{re.sub('[^a-z0-9]', '', method.printed.lower())}",
            method=method.method,
            submitted=f"{self.date}T00:00:00+00:00",
            track=method.track,
            authors=tuple(paper.authors),
            paper=Publication(title=paper.title, venue=paper.venue, year=paper.year, bibtex=paper.bibtex()),
            benchmark=BenchmarkUse(name=benchmark, version=where.version),
            protocols={self.protocol: 1},
            model=ModelUse(
                name=network if method.track == "post-hoc" else f"{network} {method.printed}",
                architecture=where.architecture,
                recipe=trained,
            ),
            detector=DetectorUse(**known, search=Search(tuning=method.tuning)),
            reported=tuple(self._reported(method, benchmark)),
            notes=tuple(self._notes(method, benchmark)),
        )
        flags = (method.flag,) if method.flag else ()
        return Standing(entry, "reported", entry.reported_measurements(), flags=flags, curated=True)

    def _notes(self, method: PublishedMethod, benchmark: str) -> Iterator[str]:
        yield f'{self.mark.capitalize()}: {self.cited}, row "{method.printed}".'
        for doubt in self.doubtful:
            if (doubt.method, doubt.benchmark) == (method.printed, benchmark):
                first, second = (" ± ".join(f"{n:.2f}" for n in each) for each in (doubt.taken, doubt.rendering))
                yield (
                    f"{doubt.column}: the authors' result files say {first}, a text rendering of the paper says "
                    f"{second}; the files are followed."
                )

    def _reported(self, method: PublishedMethod, benchmark: str) -> Iterator[Reported]:
        runs = self.benchmarks[benchmark].runs
        for column, number in zip(self.columns, method.results[benchmark]):
            if number is None:
                continue
            place: dict[str, Any] = {"metric": self.metric, "group": column, "set": MEAN}
            if column == "accuracy":
                place = {"metric": "accuracy", "group": "id", "set": "id_test"}
            spread: dict[str, Any] = {}
            if runs > 1:
                spread = {
                    "spread": f"{number[1]:.2f}",
                    "spread_meaning": f"standard deviation over {runs} training runs",
                }
            yield Reported(
                protocol=self.protocol,
                printed=f"{number[0]:.2f}",
                source=f"{self.cited}, row {method.printed}",
                link=self.source.url,
                **place,
                **spread,
            )


@cache
def published_tables() -> tuple[PublishedTable, ...]:
    """Every table that comes with the package."""
    found = sorted((path for path in files(__package__).iterdir() if path.name.endswith(".json")), key=lambda p: p.name)
    return tuple(parse(PublishedTable, json.loads(path.read_text(encoding="utf-8")), path.name) for path in found)


__all__ = ["PublishedTable", "published_standings", "published_tables"]


@cache
def published_standings() -> tuple[Standing, ...]:
    """The standings of all published tables, of the public boards, and of our own networks beside them."""
    from oodscope.leaderboard.published.boards import board_standings  # whose rows are compared with the tables
    from oodscope.leaderboard.published.own import own_standings

    printed = (standing for table in published_tables() for standing in table.standings())
    return (*printed, *board_standings(), *own_standings())
