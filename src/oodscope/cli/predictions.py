"""Predictions as lines for machines, or as a table for people."""

import csv
import json
import sys
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from oodscope.deploy.scorer import Scorer
from oodscope.jobs.predict import FIELDS, Rows


def as_lines(rows: Rows, form: Literal["json", "csv"]) -> int:
    """Print rows as they come; how many failed."""
    failed = 0
    writer = csv.DictWriter(sys.stdout, FIELDS, lineterminator="\n")
    if form == "csv":
        writer.writeheader()
    for row in rows:
        failed += row["error"] is not None
        if form == "csv":
            writer.writerow(row)
        else:
            sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()
    return failed


def as_table(rows: Rows, scorer: Scorer) -> int:
    """Print a table for people; how many failed."""
    table = Table("image", "class", "score", "p-value", "verdict", box=None, header_style="bold", pad_edge=False)
    failed = 0
    for row in rows:
        if row["error"] is not None:
            failed += 1
            table.add_row(Text(row["path"]), Text(row["error"], style="red"))
            continue
        verdict = {None: "", True: "accepted", False: "[bold]rejected[/bold]"}[row["accepted"]]
        p_value = "" if row["p_value"] is None else f"{row['p_value']:.4f}"
        table.add_row(Text(row["path"]), Text(row["class_name"]), f"{row['score']:.5g}", p_value, verdict)
    console = Console()
    console.print(table)
    if scorer.calibration is not None:
        console.print(str(scorer.calibration.guarantee), markup=False, highlight=False)
    return failed
