"""Audit: which images and classes of a benchmark are where they should not be."""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from oodscope.base.files import write_text

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
    """Two images that are the same picture.

    Parameters
    ----------
    kind : ``exact`` if every pixel agrees, ``near`` if the pictures do: compressed, resized, brightened, cropped.
    found_by : ``pixels``, ``hash`` (perceptual) or ``embedding`` (features of a classifier).
    similarity : correlation of the pictures in small, 1 for exact pairs.
    """

    verdict: Verdict
    kind: Literal["exact", "near"]
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
class Audit:
    """What an audit found.

    Parameters
    ----------
    pairs, classes : the findings.
    notes : what a reader should know of the search itself, such as what could not be compared.
    sets : how many images each set has.
    seconds : what each step took.
    """

    benchmark: str
    benchmark_version: str
    pairs: Sequence[ImagePair]
    classes: Sequence[ClassPair]
    notes: Sequence[str] = ()
    sets: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    def verdicts(self) -> dict[str, int]:
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
            where = "more than once" if first == second else f"in {first} too"
            lines.append(f"{kind}: {count} image{'s' * (count > 1)} of {second} occur{'s' * (count == 1)} {where}")
        for name in dict.fromkeys(pair.set for pair in self.classes):
            own = [pair for pair in self.classes if pair.set == name]
            lines.append(f"classes: {len({pair.ood_class for pair in own})} of {name} meet ID classes")
        return lines

    def save(self, folder: Path | str) -> Path:
        """Write ``images.csv``, ``classes.csv`` and, with everything, ``audit.json``."""
        folder = Path(folder)
        write_text(folder / "images.csv", _csv([_flat(pair) for pair in self.pairs], _flat(_BLANK)))
        write_text(folder / "classes.csv", _csv([asdict(pair) for pair in self.classes], ClassPair.__annotations__))
        content = asdict(self) | {"verdicts": self.verdicts(), "summary": self.summary()}
        write_text(folder / "audit.json", json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        return folder


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
