"""Audit: which images and classes of a benchmark are where they should not be."""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from oodscope.base.errors import DataError
from oodscope.base.files import write_text
from oodscope.base.hashing import fingerprint
from oodscope.document.chapter import Block, Card, Cards, Chapter
from oodscope.document.table import Entry, Row, Table, columns
from oodscope.results.measurement import Measurements
from oodscope.results.record import RunRecord, environment
from oodscope.results.run import Run
from oodscope.results.runfile import expect_kind, read_runfile, write_runfile

_FILE = "audit.json"

Verdict = Literal["fatal", "contamination", "note"]
VERDICTS: dict[Verdict, str] = {
    "fatal": "what is tuned on is judged on: remove it from one of the two sets",
    "contamination": "a test image or class is known where it should be new, or new where it should be known",
    "note": "worth knowing; nothing is judged by it",
}


@dataclass(frozen=True)
class ImageRef:
    """One image of a benchmark; ``row`` counts within its set."""

    set: str
    role: str
    row: int
    sample_id: str
    label: str


@dataclass(frozen=True)
class ImagePair:
    """Two images that are the same picture, or look alike.

    Parameters
    ----------
    kind : ``exact`` if every pixel agrees; ``near`` if the pictures are the same: compressed, resized, brightened,
        cropped, shifted; ``alike`` if they look alike, no closer than pictures of their own sets do by chance.
    found_by : ``pixels``, ``hash`` (perceptual) or ``embedding`` (features of a classifier).
    similarity : correlation of the pictures in small, 1 for exact pairs.
    """

    verdict: Verdict
    kind: Literal["exact", "near", "alike"]
    found_by: Literal["pixels", "hash", "embedding"]
    first: ImageRef
    second: ImageRef
    similarity: float


@dataclass(frozen=True)
class ClassPair:
    """A class of an outlier set that meets an ID class; ``images`` of the set are of it."""

    verdict: Verdict
    set: str
    role: str
    ood_class: str
    id_class: str
    relation: str
    detail: str
    images: int


@dataclass(frozen=True)
class Audit(Run):
    """What an audit found.

    Parameters
    ----------
    pairs, classes : the findings.
    notes : what a reader should know of the search itself, such as what could not be compared.
    sets : how many images each set has.
    seconds : what each step took.
    created : when, in UTC, as ISO 8601.
    """

    kind: ClassVar[str] = "audit"

    benchmark: str
    benchmark_version: str
    pairs: Sequence[ImagePair]
    classes: Sequence[ClassPair]
    notes: Sequence[str] = ()
    sets: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def record(self) -> RunRecord:
        """What was audited; an audit has no model, seed or protocol."""
        return RunRecord(
            id=f"audit-{fingerprint(self.benchmark, self.benchmark_version, self.created)[:12]}",
            created=self.created,
            oodscope_version=version("oodscope"),
            benchmark=self.benchmark,
            benchmark_version=self.benchmark_version,
            environment=environment(),
            notes=list(self.notes),
            costs=dict(self.seconds),
        )

    @property
    def measurements(self) -> Measurements:
        """None: an audit measures no detector."""
        return Measurements()

    def tables(self) -> Mapping[str, Table]:
        """``images``: how many images sets share; ``classes``: OOD classes that meet ID classes."""
        images = tuple(
            Row((Entry(kind), Entry(first), Entry(second)), (Entry(str(count), count),))
            for (kind, first, second), count in self.shared().items()
        )
        classes = tuple(
            Row(
                (Entry(pair.set), Entry(pair.ood_class)),
                (Entry(pair.id_class), Entry(pair.relation), Entry(pair.verdict), Entry(str(pair.images), pair.images)),
            )
            for pair in self.classes
        )
        heads = columns("kind", "first set", "second set")
        meets = columns("ID class", "relation", "verdict", "images")
        return {
            "images": Table("images", "Images that sets share", heads, columns("images of the second set"), images),
            "classes": Table(
                "classes", "OOD classes that meet ID classes", columns("set", "OOD class"), meets, classes
            ),
        }

    def chapter(self) -> Chapter:
        """How many findings have each verdict, and which sets share images or classes."""
        counts = self.verdicts()
        cards = Cards(tuple(Card(name, str(count), VERDICTS[name]) for name, count in counts.items()))
        verdict = "; ".join([", ".join(f"{count} {name}" for name, count in counts.items()), *self.summary()])
        blocks: tuple[Block, ...] = (cards, *self.tables().values())
        return Chapter(f"Audit of {self.benchmark}", self.kind, verdict, blocks)

    def verdicts(self) -> dict[Verdict, int]:
        """How many findings have each verdict, gravest first."""
        found = Counter([*(pair.verdict for pair in self.pairs), *(pair.verdict for pair in self.classes)])
        return {verdict: found[verdict] for verdict in VERDICTS}

    def shared(self) -> dict[tuple[str, str, str], int]:
        """How many images of the second set have a twin in the first, by kind: ``("exact", "train", "test")``."""
        counted = {(pair.kind, pair.first.set, pair.second.set, pair.second.row) for pair in self.pairs}
        return dict(sorted(Counter(key[:3] for key in counted).items()))

    def summary(self) -> list[str]:
        """One line per pair of sets and per outlier set with overlapping classes."""
        lines = []
        for (kind, first, second), count in self.shared().items():
            size = self.sets.get(second, 0)
            share = f" of {size} images ({100 * count / size:.3g} %)" if size else f" image{'s' * (count > 1)}"
            lines.append(f"{kind}: {count}{share} of {second} {_RELATION[kind](count, first, second)}")
        for name in dict.fromkeys(pair.set for pair in self.classes):
            own = [pair for pair in self.classes if pair.set == name]
            lines.append(f"classes: {len({pair.ood_class for pair in own})} of {name} meet ID classes")
        return lines

    def save(self, folder: Path | str) -> Path:
        """Write ``images.csv``, ``classes.csv``, with everything ``audit.json``, and ``run.json``, which comes last.

        An audit is repeated after its findings were mended, so it may replace an older one.
        """
        folder = Path(folder)
        write_text(folder / "images.csv", _csv([_flat(pair) for pair in self.pairs], _flat(_BLANK)))
        write_text(folder / "classes.csv", _csv([asdict(pair) for pair in self.classes], ClassPair.__annotations__))
        own = {name: value for name, value in asdict(self).items() if name != "created"}
        content = own | {"verdicts": self.verdicts(), "summary": self.summary()}
        write_text(folder / _FILE, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        return write_runfile(folder, self.kind, self.record, ["images.csv", "classes.csv", _FILE])

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read what ``save`` wrote."""
        folder = Path(folder)
        file = expect_kind(read_runfile(folder), folder, cls.kind)
        try:
            content = json.loads((folder / _FILE).read_text(encoding="utf-8"))
            pairs = [
                ImagePair(**{**each, "first": ImageRef(**each["first"]), "second": ImageRef(**each["second"])})
                for each in content["pairs"]
            ]
            names = ("benchmark", "benchmark_version", "notes", "sets", "seconds")
            rest = {name: content[name] for name in names}
            classes = [ClassPair(**each) for each in content["classes"]]
            return cls(pairs=pairs, classes=classes, created=file.record.created, **rest)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataError(f"{folder / _FILE}: not the findings of an audit: {error}") from error


def _same(count: int, first: str, second: str) -> str:
    verb = "is" if count == 1 else "are"
    return f"{verb} the same as another of that set" if first == second else f"{verb} the same as one of {first}"


def _alike(count: int, first: str, second: str) -> str:
    other = "others of that set" if first == second else f"images of {first}"
    return f"look{'s' * (count == 1)} alike {other}, as independent images of these sets do"


_RELATION = {"exact": _same, "near": _same, "alike": _alike}


def _flat(pair: ImagePair) -> dict[str, Any]:
    own = {"verdict": pair.verdict, "kind": pair.kind, "found_by": pair.found_by, "similarity": pair.similarity}
    sides = (("first", pair.first), ("second", pair.second))
    return own | {f"{side}_{key}": value for side, image in sides for key, value in asdict(image).items()}


def _csv(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Any]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


_NOBODY = ImageRef("", "", 0, "", "")
_BLANK = ImagePair("note", "exact", "pixels", _NOBODY, _NOBODY, 1.0)
