"""``oodscope leaderboard verify``: every number once more."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oodscope.cli.options import OUTPUT

if TYPE_CHECKING:
    from oodscope.leaderboard.records.standing import Standing
    from oodscope.leaderboard.verify.verifying import Verification


def verify(
    folder: Annotated[Path, typer.Argument(help="An entry, or a folder of entries.")],
    as_json: Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print one JSON object.")] = False,
) -> None:
    """Compute every number of an entry again.

    From its scores; exit status 1 if anything is refused.
    """
    found = _verified(folder)
    if as_json:
        standings = [content(each) for each in found.board.standings]
        typer.echo(json.dumps({"standings": standings, "refused": dict(found.refused)}))
    else:
        for standing in found.board.standings:
            _print(standing)
        for name, reason in found.refused.items():
            _line(f"{name}: REFUSED: {reason}")
    if found.refused:
        raise typer.Exit(1)


def content(standing: "Standing") -> dict[str, Any]:
    """A standing for machines."""
    from dataclasses import asdict

    return {
        "entry": standing.entry.id,
        "method": standing.entry.method,
        "benchmark": str(standing.entry.benchmark),
        "tier": standing.tier,
        "track": standing.track,
        "tuning": standing.tuning,
        "covered": list(standing.covered),
        "received": standing.received,
        "flags": list(standing.flags),
        "differences": [asdict(each) for each in standing.differences],
        "superseded_by": standing.superseded_by,
        "reason": standing.reason,
        "measurements": json.loads(standing.measurements.to_dataframe().to_json(orient="records")),
    }


def _verified(folder: Path) -> "Verification":
    from oodscope.base.errors import OodscopeError
    from oodscope.leaderboard.records.board import Board
    from oodscope.leaderboard.records.folder import ENTRY
    from oodscope.leaderboard.verify.verifying import Verification, verify_each
    from oodscope.leaderboard.verify.verifying import verify as verify_one

    if not (folder / ENTRY).exists():
        return verify_each(folder)
    try:
        return Verification(Board((verify_one(folder),)), {})
    except OodscopeError as error:
        return Verification(Board(()), {folder.name: str(error)})


def _print(standing: "Standing") -> None:
    from oodscope.document.wording import percent

    entry = standing.entry
    _line(f"{entry.id}: {standing.tier} ({entry.method}, {entry.benchmark}, {standing.track}, {standing.tuning})")
    if standing.superseded_by:
        _line(f"  superseded by {standing.superseded_by}: {standing.reason}")
    for each in standing.differences:
        ends = "" if each.low is None or each.high is None else f" ({percent(each.low)} to {percent(each.high)})"
        verdict = "beyond noise" if each.above_noise else "agrees"
        _line(
            f"  {each.protocol} {each.metric} {each.group} {each.set}: reported {percent(each.reported)}, measured "
            f"{percent(each.measured)}{ends}: {verdict}"
        )
    for flag in standing.flags:
        _line(f"  {flag}")


def _line(text: str) -> None:
    """Print text of submitters: nothing in it moves the cursor."""
    from oodscope.leaderboard.records.text import one_line

    indent = "  " if text.startswith("  ") else ""
    typer.echo(indent + one_line(text))
