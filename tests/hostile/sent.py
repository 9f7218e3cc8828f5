"""Damaged and forged folders: runs and entries of a leaderboard."""

from collections.abc import Iterator

from tests.hostile.case import Case
from tests.hostile.good import copy_entry, copy_run, cut, edited, flipped, linked


def _unlinked(name):
    return lambda folder: (folder / name).unlink()


def _text(name, text):
    return lambda folder: (folder / name).write_text(text)


def _record(**values):
    return edited(lambda content: content["record"].update(values), "run.json")


RUNS: dict[str, tuple[object, tuple[str, ...]]] = {
    "no record": (_unlinked("run.json"), ("spoiled",)),
    "empty record": (_text("run.json", ""), ("run.json",)),
    "cut record": (cut("run.json", 300), ("run.json",)),
    "a list": (_text("run.json", "[]"), ("run.json",)),
    "deep": (_text("run.json", "[" * 5000 + "]" * 5000), ("run.json",)),
    "repeated key": (_text("run.json", '{"kind": "a", "kind": "b"}'), ("kind",)),
    "a key missing": (edited(lambda content: content.pop("kind"), "run.json"), ("run.json",)),
    "another schema": (edited(lambda content: content.update(schema=99), "run.json"), ("99",)),
    "an unknown kind": (edited(lambda content: content.update(kind="magic"), "run.json"), ("magic",)),
    "a wrong type": (_record(seed="x"), ("seed",)),
    "a file outside": (
        edited(lambda content: content["sha256"].update({"../../../etc/passwd": "0"}), "run.json"),
        ("passwd",),
    ),
    "checksums a list": (edited(lambda content: content.update(sha256=[]), "run.json"), ("run.json",)),
    "no scores": (_unlinked("scores.parquet"), ("scores.parquet",)),
    "cut scores": (cut("scores.parquet", 500), ("scores.parquet",)),
    "changed scores": (flipped("scores.parquet", 300), ("scores.parquet",)),
}


def run_cases() -> Iterator[Case]:
    for name, (change, tells) in RUNS.items():
        yield Case(f"run: {name}", ("table", "spoiled"), tells, {"spoiled": copy_run(change)})


def _put(**values):
    return edited(lambda content: content.update(values))


def _put_in(part, **values):
    return edited(lambda content: content[part].update(values))


PRINTED = {"protocol": "standard", "metric": "auroc", "group": "near", "set": "mean", "source": "T", "printed": "1"}
ENTRIES: dict[str, tuple[object, tuple[str, ...]]] = {
    "no record": (_unlinked("entry.json"), ("entry.json",)),
    "empty": (_text("entry.json", ""), ("entry.json",)),
    "a list": (_text("entry.json", "[]"), ("entry.json",)),
    "deep": (_text("entry.json", '{"a":' * 3000 + "1" + "}" * 3000), ("nested",)),
    "repeated key": (_text("entry.json", '{"id": "a", "id": "b"}'), ("'id'",)),
    "NaN": (_text("entry.json", '{"id": NaN}'), ("NaN",)),
    "too large": (_text("entry.json", '{"a": "' + "x" * 3_000_000 + '"}'), ("bytes",)),
    "another schema": (_put(schema_version=2), ("schema_version",)),
    "another id": (_put(id="other"), ("other",)),
    "an unknown key": (_put(evil=1), ("evil",)),
    "a method of nothing": (_put(method=""), ("method",)),
    "a method of escapes": (_put(method="\x1b\x1b"), ("method",)),
    "a method too long": (_put(method="x" * 5000), ("method",)),
    "authors a word": (_put(authors="Ada"), ("authors",)),
    "a link that runs": (_put(code="javascript:alert(1)"), ("code",)),
    "a link without s": (_put(code="http://example.org"), ("code",)),
    "a link with a user": (_put(code="https://me:pw@example.org"), ("code",)),
    "an unknown track": (_put(track="magic"), ("track",)),
    "a date of no zone": (_put(submitted="2026-01-01T00:00:00"), ("submitted",)),
    "no date": (_put(submitted="yesterday"), ("submitted",)),
    "an unknown protocol": (_put(protocols={"nosuch": 1}), ("nosuch",)),
    "a protocol of the future": (_put(protocols={"standard": 99}), ("99",)),
    "no protocol": (_put(protocols={}), ("protocol",)),
    "neither scores nor numbers": (_put(scores=None, reported=[]), ("scores",)),
    "a false claim": (edited(lambda content: content["claims"][0].update(value=0.123)), ("claims",)),
    "a claim of nothing": (edited(lambda content: content["claims"][0].update(set="nosuch")), ("nosuch",)),
    "a false accuracy": (_put_in("model", id_accuracy=0.001), ("accuracy",)),
    "an accuracy of 2": (_put_in("model", id_accuracy=2.0), ("id_accuracy",)),
    "a group outside": (_put(group="../x"), ("group",)),
    "a number that is none": (_put(reported=[PRINTED | {"printed": "9e9"}]), ("printed",)),
    "rows of nothing": (_put_in("scores", rows=0), ("rows",)),
    "another checksum": (_put_in("scores", sha256="0" * 64), ("checksum",)),
    "a checksum of words": (_put_in("scores", sha256="x"), ("sha256",)),
    "no scores": (_unlinked("scores.parquet"), ("scores.parquet",)),
    "cut scores": (cut("scores.parquet", 200), ("scores.parquet",)),
    "text for scores": (_text("scores.parquet", "PAR1"), ("scores.parquet",)),
    "scores that are a link": (linked("scores.parquet"), ("scores.parquet",)),
    "a record that is a link": (linked("entry.json"), ("entry.json",)),
    "a file too many": (_text("run.sh", "rm -rf /"), ("run.sh",)),
    "another detector": (_put_in("detector", id="mine"), ("mine",)),
    "a set of another size": (
        edited(lambda content: content["benchmark"]["sets"]["id_test"].update(n=5)),
        ("id_test",),
    ),
    "a set of another list": (
        edited(lambda content: content["benchmark"]["sets"]["id_test"].update(list_hash="1" * 64)),
        ("id_test",),
    ),
    "a set that is not there": (
        edited(lambda content: content["benchmark"]["sets"].update(more={"role": "near", "n": 5})),
        ("more",),
    ),
}


def entry_cases() -> Iterator[Case]:
    for name, (change, tells) in ENTRIES.items():
        argv = ("leaderboard", "verify", "knn-tiny" if name != "no record" else ".")
        yield Case(f"entry: {name}", argv, tells, {"knn-tiny": copy_entry(change)})
