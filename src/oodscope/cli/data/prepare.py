"""``oodscope data prepare``: download datasets, and say what must be fetched by hand."""

from typing import Annotated

import typer

from oodscope.cli.command import EXECUTION, progress
from oodscope.cli.data.options import Name
from oodscope.cli.options import Root


def prepare(
    name: Name,
    root: Root = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", rich_help_panel=EXECUTION, help="Download without asking.")
    ] = False,
) -> None:
    """Download, unpack and verify datasets.

    Prints what must be fetched by hand. Interrupted, it continues where it stopped. Ends with status 1 while something
    is lacking.
    """
    from oodscope.cli.data.check import show_report
    from oodscope.data.public.check import SplitReport
    from oodscope.data.public.needs import needs_of
    from oodscope.data.public.prepare import Item
    from oodscope.data.public.prepare import prepare as bring
    from oodscope.data.public.root import data_root

    folder = data_root(root)
    wanted = needs_of(name)

    def confirm(items: list[Item]) -> bool:
        for card in {item.card.name: item.card for item in items}.values():
            typer.echo(f"terms of {card.name}: {card.licence}", err=True)
        for item in items:
            typer.echo(f"to download: {item.fetch.url} ({item.fetch.trust})", err=True)
        return yes or typer.confirm(f"Download {len(items)} files to {folder}?", default=True, err=True)

    def show(report: SplitReport) -> None:
        show_report(report.as_json())

    outcome = bring(wanted, folder, confirm, show, progress())
    for item in outcome.by_hand.values():
        place = f" Put it into {item.archive(folder).parent} and run this again." if item.fetch.name else ""
        typer.echo(f"by hand, {item.card.name}: {item.fetch.ask}{place}")
    for failure in outcome.failures:
        typer.echo(f"failed: {failure}")
    lacking = outcome.lacking(wanted)
    for each in lacking:
        typer.echo(f"{outcome.states[each.card.name, each.split]}: {each.card.name}/{each.split}")
    if lacking:
        raise typer.Exit(1)
    typer.echo(f"{name}: ready under {folder}")
