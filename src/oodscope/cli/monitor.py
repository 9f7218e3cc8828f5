"""``oodscope monitor``: an alarm for the day the images are no longer like those a detector was calibrated on."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options
from oodscope.cli.command import loading, progress
from oodscope.cli.options import separated

ALARM = "Alarm"


def monitor(
    detector: Annotated[Path, typer.Argument(help="A file that 'oodscope fit' wrote.")],
    images: Annotated[list[Path], typer.Argument(help="Image files, and folders of them, in the order of the stream.")],
    state: Annotated[
        Path | None,
        typer.Option(rich_help_panel=ALARM, help="File to go on from and to keep what was seen in; made if missing."),
    ] = None,
    alpha: Annotated[
        float, typer.Option(rich_help_panel=ALARM, help="Chance of a false alarm over the whole stream.")
    ] = 0.01,
    power: Annotated[
        bool, typer.Option(rich_help_panel=ALARM, help="Say how soon outliers would raise the alarm.")
    ] = True,
    auroc: Annotated[
        float, typer.Option(rich_help_panel=ALARM, help="AUROC of the detector that the power assumes.")
    ] = 0.9,
    seed: Annotated[int, typer.Option(rich_help_panel=ALARM, help="Of the numbers that break ties.", min=0)] = 0,
    model: options.OwnModel = "",
    weights: options.FileWeights = None,
    allow_download: options.AllowDownload = False,
    as_json: options.AsJson = False,
    batch_size: options.BatchSize = 64,
    device: options.Device = "auto",
) -> None:
    """Watch a stream of images; raise a valid alarm.

    The alarm says that the stream is not exchangeable with the calibration images: outliers, other conditions, or an
    order. It is false with probability --alpha at most, over the whole stream and however often one looks. With --state
    every call goes on where the last one stopped; --alpha and --seed are then those of the state.
    """
    import json

    from oodscope.base.errors import OodscopeError, UsageError

    for option, value, low in (("--alpha", alpha, 0.0), ("--auroc", auroc, 0.5)):
        if not low < value < 1:
            raise UsageError(f"monitor: {option} lies between {low:g} and 1; it is {value:g}")
    loading()

    from oodscope.cli.verdicts import judge_files
    from oodscope.deploy.monitor import Monitor
    from oodscope.jobs.fit import load_fitted
    from oodscope.metrics.rejection.exchangeability import alarm_power

    scorer = load_fitted(detector, model, separated(weights), device, allow_download=allow_download)
    if scorer.calibration is None:
        raise OodscopeError(f"{detector}: holds no calibration scores, which an alarm needs; fit again")
    known = scorer.calibration.scores
    resumed = state is not None and state.exists()
    watched = Monitor.load(state, scorer.calibration) if state is not None and resumed else None
    watched = watched or Monitor(scorer.calibration, alpha, seed)
    rows = list(judge_files(scorer, images, batch_size, progress()))
    before, earlier = watched.alarm.alarm, watched.alarm.images
    watched.observe(row["score"] for row in rows if row["error"] is None)
    if state is not None:
        watched.save(state)
    alarm = watched.alarm
    strength = alarm_power(known, alpha=alarm.alpha, auroc=auroc) if power else []
    if as_json:
        content = {
            "images": alarm.images,
            "alarm": alarm.alarm,
            "new": before is None and alarm.alarm is not None,
            "exchangeable": alarm.alarm is None,
            "log10_evidence": alarm.log_evidence / 2.302585092994046,
            "alpha": alarm.alpha,
            "power": [vars(each) for each in strength],
            "unreadable": [row["path"] for row in rows if row["error"] is not None],
        }
        typer.echo(json.dumps(content))
    else:
        typer.echo(str(alarm))
        if alarm.alarm is not None and alarm.alarm > earlier:
            readable = [row["path"] for row in rows if row["error"] is None]
            typer.echo(f"raised at: {readable[alarm.alarm - earlier - 1]}")
        for each in strength:
            typer.echo(f"power at AUROC {auroc:g} with {len(known):,} calibration images: {each}")
    if failed := sum(row["error"] is not None for row in rows):
        typer.echo(f"oodscope: {failed} image{'s' * (failed > 1)} could not be read", err=True)
        raise typer.Exit(1)
