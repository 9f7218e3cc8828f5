"""MethodView: everything that the page of one method tells."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from oodscope.base.catalog import catalog
from oodscope.base.hashing import canonical_json
from oodscope.document.number import Number
from oodscope.document.table import Column
from oodscope.document.wording import label, shown, unit_of
from oodscope.leaderboard.records.board import Board, Erratum
from oodscope.leaderboard.records.entry import Entry, Track
from oodscope.leaderboard.records.standing import Difference, Standing
from oodscope.leaderboard.records.text import NOT_KNOWN
from oodscope.leaderboard.site.addresses import anchor, entry_files, method_key, method_page, model_page
from oodscope.leaderboard.site.sheets import Ranks, Sheet, sheets
from oodscope.leaderboard.site.words import TUNED, not_covered


@dataclass(frozen=True)
class PaperView:
    """A publication as entries cite it, with the links that came with it; ``mark`` is its place on the page."""

    title: str
    authors: tuple[str, ...]
    venue: str
    year: int | None
    link: str
    code: str
    weights: str
    bibtex: str
    mark: str


@dataclass(frozen=True)
class DifferenceView:
    """A printed number beside the measured one."""

    standing: Standing
    found: Difference

    @property
    def what(self) -> str:
        place = Column(self.found.group, self.found.set).words
        words = label(self.found.metric)
        return f"{self.standing.entry.benchmark}, {self.found.protocol}: {words}, {place}"

    @property
    def reported(self) -> Number:
        return Number(self.found.reported, None, None, unit=unit_of(self.found.metric))

    @property
    def measured(self) -> Number:
        return Number(self.found.measured, self.found.low, self.found.high, unit=unit_of(self.found.metric))

    @property
    def difference(self) -> float:
        return self.found.measured - self.found.reported

    @property
    def difference_words(self) -> str:
        return ("+" if self.difference > 0 else "") + shown(self.difference, unit_of(self.found.metric))

    @property
    def above_noise(self) -> bool:
        return self.found.above_noise

    @property
    def source(self) -> str:
        return self.found.source

    @property
    def entry(self) -> str:
        return self.standing.entry.id

    @property
    def anchor(self) -> str:
        return anchor(self.standing.entry.id)


@dataclass(frozen=True)
class ErratumView:
    """An entry that gave way to another; ``page`` is where that one stands, from the root of the site."""

    old: str
    new: str
    reason: str
    date: str
    page: str

    @property
    def old_anchor(self) -> str:
        return anchor(self.old)


@dataclass(frozen=True)
class EntryView:
    """An entry's record, as a list of facts."""

    standing: Standing
    files: list[tuple[str, str]]

    @property
    def entry(self) -> Entry:
        return self.standing.entry

    @property
    def anchor(self) -> str:
        return anchor(self.entry.id)

    @property
    def model_page(self) -> str:
        return model_page(self.entry.model.name)

    @property
    def reproduce(self) -> str:
        """The command that computes the entry again, or that runs its detector where it has no scores; else empty."""
        entry = self.entry
        if entry.scores is not None:
            return f"oodscope leaderboard verify leaderboard/{entry.id}"
        known = entry.detector.name in catalog("detectors") and entry.benchmark.name in catalog("benchmarks")
        if not known:
            return ""
        network = "resnet18_32" if entry.benchmark.name.startswith("cifar") else "torchvision:resnet50"
        return (
            f"oodscope evaluate --model {network} --weights YOURS.safetensors --benchmark {entry.benchmark.name} "
            f"--detectors {entry.detector.name} -o runs"
        )

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What the record says; what nobody wrote down is left out."""
        entry = self.entry
        detector, execution, model = entry.detector, entry.execution, entry.model
        said = {
            "received": self.standing.received[:10],
            "submitted, by its own word": "" if self.standing.received else entry.submitted[:10],
            "submitter": self.standing.submitter,
            "re-executed": ", ".join(self.standing.covered),
            "not re-executed": ", ".join(not_covered(self.standing)),
            "protocols": ", ".join(f"{name} (version {version})" for name, version in entry.protocols.items()),
            "detector": detector.name,
            "parameters": canonical_json(detector.params) if detector.params else "",
            "tuning": TUNED[self.standing.tuning],
            "fitted on": detector.fit_split,
            "architecture": model.architecture,
            "recipe": model.recipe,
            "weights": model.weights_hash,
            "seed": "" if model.seed is None else str(model.seed),
            "run": execution.run,
            "device": execution.device,
            "precision": execution.precision,
            "scores": "" if entry.scores is None else f"{entry.scores.rows} rows, sha256 {entry.scores.sha256}",
        }
        return [(name, value) for name, value in said.items() if value and value != NOT_KNOWN]


@dataclass(frozen=True)
class MethodView:
    """A method by its key: all standings under any spelling of its name, checked ones first."""

    standings: tuple[Standing, ...]
    errata: tuple[ErratumView, ...]
    sheets: tuple[Sheet, ...]
    scores: bool

    @property
    def name(self) -> str:
        """The spelling that is used most."""
        return max(self.spellings, key=lambda name: sum(each.entry.method == name for each in self.standings))

    @property
    def spellings(self) -> list[str]:
        return sorted({each.entry.method for each in self.standings})

    @property
    def tracks(self) -> list[Track]:
        return list(dict.fromkeys(each.track for each in self.standings))

    @property
    def papers(self) -> list[PaperView]:
        """Each publication once, with the first links that anybody gave for it."""
        cited: dict[str, list[Entry]] = {}
        for each in self.standings:
            entry = each.entry
            if entry.paper is not None or entry.code or entry.weights:
                cited.setdefault(entry.paper.title if entry.paper else "", []).append(entry)
        return [_paper(entries, f"bibtex-{n}") for n, entries in enumerate(cited.values())]

    @property
    def differences(self) -> list[DifferenceView]:
        found = [DifferenceView(each, difference) for each in self.standings for difference in each.differences]
        return sorted(found, key=lambda view: not view.above_noise)

    @property
    def entries(self) -> list[EntryView]:
        return [EntryView(each, entry_files(each.entry, self.scores)) for each in self.standings]


def method_views(board: Board, ranks: Ranks, scores: bool) -> dict[str, MethodView]:
    """The view of every method by its key, in alphabetical order."""
    pages = {each.entry.id: method_page(each.entry.method) for each in board.standings}
    dated = {each.old: each for each in board.errata}
    found: dict[str, list[Standing]] = {}
    for each in sorted(board.standings, key=lambda each: (bool(each.superseded_by), not each.ranked, each.entry.id)):
        found.setdefault(method_key(each.entry.method), []).append(each)
    return {
        key: MethodView(
            tuple(own),
            tuple(_erratum(each, dated, pages) for each in own if each.superseded_by),
            tuple(sheets(own, "network", ranks)),
            scores,
        )
        for key, own in sorted(found.items())
    }


def _erratum(standing: Standing, dated: Mapping[str, Erratum], pages: Mapping[str, str]) -> ErratumView:
    known = dated.get(standing.entry.id)
    page = pages.get(standing.superseded_by)
    return ErratumView(
        standing.entry.id,
        standing.superseded_by,
        known.reason if known else standing.reason,
        known.date if known else "",
        f"{page}#{anchor(standing.superseded_by)}" if page else "",
    )


def _paper(entries: Sequence[Entry], mark: str) -> PaperView:
    def first(values: Iterator[str]) -> str:
        return next((value for value in values if value), "")

    papers = [entry.paper for entry in entries if entry.paper]
    return PaperView(
        papers[0].title if papers else "",
        entries[0].authors,
        first(paper.venue for paper in papers),
        next((paper.year for paper in papers if paper.year), None),
        first(paper.link for paper in papers),
        first(entry.code for entry in entries),
        first(entry.weights for entry in entries),
        first(paper.bibtex for paper in papers),
        mark,
    )
