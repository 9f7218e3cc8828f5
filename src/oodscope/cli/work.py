"""``oodscope plan``, ``work`` and ``status``: a job in units, for many processes and machines."""

import json
from typing import Annotated

import typer

from oodscope.cli import options
from oodscope.cli.command import EXECUTION, loading, progress

Plan = Annotated[str, typer.Argument(help="Folder of a plan, or its URL (s3://...).", metavar="PLAN")]


def plan(
    config: Annotated[str, typer.Argument(help="YAML file that declares the job, or the name of a packaged one.")],
    output: Annotated[
        str, typer.Option("--output", "-o", rich_help_panel=options.OUTPUT, help="Folder for the plan, or its URL.")
    ] = "plan",
    workers: Annotated[
        int, typer.Option(rich_help_panel=EXECUTION, help="Workers it is meant for: more get smaller pieces.", min=1)
    ] = 1,
    as_json: options.AsJson = False,
) -> None:
    """Divide a job into units of work; nothing is run.

    Then 'oodscope work PLAN' in as many processes as you like, on as many machines as see the folder and the cache;
    'oodscope run PLAN' does what is left and makes the result.
    """
    from oodscope.jobs.run import declared_file
    from oodscope.jobs.units.divided import write_plan

    declared = declared_file(config)
    loading()
    made = write_plan(declared, output, workers=workers, progress=progress())
    kinds: dict[str, int] = {}
    for unit in made.units:
        kinds[unit.kind] = kinds.get(unit.kind, 0) + 1
    seconds = made.status().seconds
    if as_json:
        typer.echo(json.dumps({"plan": str(output), "units": len(made.units), "kinds": kinds, "seconds": seconds}))
        return
    typer.echo(f"{output}: {len(made.units)} units ({', '.join(f'{count} {kind}' for kind, count in kinds.items())})")
    if seconds is not None:
        typer.echo(f"about {seconds:,.0f} s of work, if a worker sees 1,000 images a second")
    typer.echo(f"next: oodscope work {output}   (any number of times), then: oodscope run {output}")


def work(
    folder: Plan,
    share: Annotated[
        str, typer.Option(rich_help_panel=EXECUTION, help="Begin with part i of n of the units: i/n, counted from 0.")
    ] = "0/1",
    kinds: Annotated[
        list[str] | None,
        typer.Option(rich_help_panel=EXECUTION, help=f"Kinds of units to do; all unless given. {options.LIST}"),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", rich_help_panel=EXECUTION, help="Try again what failed before.")
    ] = False,
) -> None:
    """Do units of a plan, in as many processes as you start.

    Every launcher starts this command, and so may you, until no unit is left. A worker begins with its share and then
    helps the others. Killed, it loses at most the unit it was at; the same command goes on.
    """
    from oodscope.execution.plan import WorkPlan
    from oodscope.execution.units import Share

    part, opened = Share.read(share), WorkPlan(folder)
    names = options.separated(kinds)
    known = {unit.kind for unit in opened.units}
    for name in names:
        if name not in known:
            from oodscope.base.errors import UnknownNameError

            raise UnknownNameError(
                "kind of unit in this plan", name, sorted(known), f"It has: {', '.join(sorted(known))}"
            )
    loading()
    from oodscope.execution.work import work as work_on
    from oodscope.jobs.units.kinds import do

    if again:
        opened.forgive()
    worked = work_on(opened, do, share=part, kinds=names, progress=progress())
    typer.echo(f"{len(worked.done)} units done here in {worked.seconds:.1f} s", err=True)
    if worked.failed or worked.blocked:
        from oodscope.base.errors import OodscopeError

        status = opened.status()
        reason = next(iter(worked.failed.values()), "") or next(
            iter(status.failed.values()), "their needs are not done"
        )
        raise OodscopeError(
            f"{len(worked.failed)} units failed and {len(worked.blocked)} wait for what failed: {reason}; "
            f"see: oodscope status {folder}"
        )


def status(folder: Plan, as_json: options.AsJson = False) -> None:
    """Show how far a plan has come.

    What is done, what runs where and since when, what failed with the reason, and what is left.
    """
    import time
    from dataclasses import asdict

    from oodscope.execution.plan import WorkPlan

    opened = WorkPlan(folder)
    found = opened.status()
    if as_json:
        typer.echo(json.dumps(asdict(found)))
        return
    labels = {unit.name: str(unit) for unit in opened.units}
    left = f"; about {found.seconds:,.0f} s of work left" if found.seconds else ""
    typer.echo(
        f"{len(found.done)} of {found.total} done, {len(found.running)} running, {len(found.failed)} failed, "
        f"{len(found.left)} left{left}"
    )
    for name, who in found.running.items():
        typer.echo(f"  running  {labels[name]}  on {who['host']} for {max(0.0, time.time() - who['since']):.0f} s")
    for name, reason in found.failed.items():
        typer.echo(f"  failed   {labels[name]}: {reason}")
    if found.finished:
        typer.echo(f"next: oodscope run {folder}")
