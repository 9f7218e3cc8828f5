"""Reruns of leaderboard entries in units: one entry each."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oodscope.base.files import file_sha256
from oodscope.execution.plan import WorkPlan
from oodscope.execution.units import Unit
from oodscope.leaderboard.records.folder import ENTRY
from oodscope.leaderboard.verify.rerunning import ALONE
from oodscope.leaderboard.verify.rerunning import rerun as rerun_entry

RECEIPTS = "receipts"
"""The folder of a plan that receipts lie in."""


def rerun_units(folders: Sequence[Path], activations: Path, *, alone: int = ALONE, seed: int = 0) -> list[Unit]:
    """One unit for each entry that is executed again on published activations."""
    return [
        Unit(
            kind="rerun",
            spec={
                "entry": str(folder.absolute()),
                "record": file_sha256(folder / ENTRY),
                "activations": str(activations.absolute()),
                "alone": alone,
                "seed": seed,
            },
            label=f"rerun {folder.name}",
        )
        for folder in folders
    ]


def rerun(spec: Mapping[str, Any], plan: WorkPlan) -> dict[str, Any]:
    """Execute one entry again; its receipt lies in the plan's folder."""
    folder = Path(spec["entry"])
    receipt = rerun_entry(folder, Path(spec["activations"]), alone=spec["alone"], seed=spec["seed"])
    plan.home.replace(f"{RECEIPTS}/{folder.name}.json", (receipt.model_dump_json(indent=1) + "\n").encode())
    return {"verdict": receipt.verdict}
