"""``oodscope leaderboard rerun``: the detector of an entry, executed again."""

from pathlib import Path
from typing import Annotated

import typer


def rerun(
    folder: Annotated[Path, typer.Argument(help="An entry of a board.")],
    activations: Annotated[Path, typer.Option(help="Published activations of its network (leaderboard publish).")],
    detector: Annotated[
        str | None, typer.Option(help="python:PACKAGE.MODULE:CLASS, installed here, if it is not in the registry.")
    ] = None,
    alone: Annotated[int, typer.Option(help="Images to score one by one.", min=1)] = 256,
    as_json: Annotated[bool, typer.Option("--json", help="Print the receipt as JSON.")] = False,
) -> None:
    """Run the detector of an entry again on activations.

    In order, shuffled, and image by image. A receipt is written beside the entries. Exit status 1 if the scores did not
    come out. Nothing of the entry is executed: the detector comes from the registry, or is a class that you name.
    """
    from oodscope.leaderboard.records.keeping import write_receipt
    from oodscope.leaderboard.verify.rerunning import rerun as run_again

    receipt = run_again(folder, activations, detector=detector, alone=alone)
    path = write_receipt(folder.absolute().parent, receipt)
    if as_json:
        typer.echo(receipt.model_dump_json())
    else:
        typer.echo(f"{receipt.entry}: {receipt.verdict}")
        ways = {"in order": receipt.in_order, "again": receipt.repeated, "shuffled": receipt.shuffled}
        for name, value in {**ways, f"{receipt.one_by_one_rows} one by one": receipt.one_by_one}.items():
            typer.echo(f"  {name}: scores differ by {value:.1e} of their spread at most")
        typer.echo(f"  covered: {', '.join(receipt.covered)}")
        if receipt.reason:
            typer.echo(f"  {receipt.reason}")
        typer.echo(f"receipt: {path}")
    if receipt.verdict in ("random", "different"):
        raise typer.Exit(1)
