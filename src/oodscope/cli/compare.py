"""``oodscope compare``: is the difference more than noise?"""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.base.errors import UsageError
from oodscope.cli import options


def compare(
    run: Annotated[Path | None, typer.Argument(help="Folder of a run.")] = None,
    other: Annotated[Path | None, typer.Argument(help="Folder of a second run of the same benchmark.")] = None,
    detectors: options.StoredDetectors = None,
    protocol: options.Protocol = "",
    metric: options.Metric = "",
    seeds: Annotated[
        list[Path] | None,
        typer.Option(
            rich_help_panel=options.DATA,
            help="Run of another network of the recipe of RUN, for what holds for other networks; may be repeated.",
        ),
    ] = None,
    training: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=options.DATA,
            help="NAME=RUN,RUN,...: a training method and the runs of its seeds, in place of RUN; repeat it.",
        ),
    ] = None,
    weights: options.Mixture = None,
    as_json: options.AsJson = False,
) -> None:
    """Test detectors, runs or trainings against each other.

    All pairs of detectors of one run, two runs detector by detector, or training methods over their seeds, always on
    the same images.
    """
    from rich.console import Console

    from oodscope.jobs.checking import check_metric

    if metric:
        check_metric(metric)
    if (run is None) == (not training):
        raise UsageError("nothing to compare: name a run's folder, or pass --training NAME=RUN,RUN,... twice or more")
    if training and (seeds or weights):
        raise UsageError("--training compares methods over their own runs; remove --seeds and --weights")

    from oodscope.runs.comparison.compare import compare as compare_results
    from oodscope.runs.comparison.recommendation import read_weights, recommended
    from oodscope.runs.comparison.trainings import compare_trainings
    from oodscope.runs.evaluation.run import Result

    mixture = read_weights(options.separated(weights))
    folders = {name: [Path(each) for each in own] for name, own in _methods(training or ()).items()}
    chosen = {"detectors": options.separated(detectors) or None, "protocol": protocol or None, "metric": metric or None}
    advice: list[str] = []
    if run is None:
        methods = {name: [Result.open(each) for each in own] for name, own in folders.items()}
        found = compare_trainings(methods, **chosen)  # type: ignore[arg-type]
    else:
        first, second = Result.open(run), Result.open(other) if other is not None else None
        found = compare_results(first, second, seeds=[Result.open(each) for each in seeds or ()], **chosen)  # type: ignore[arg-type]
        advice = recommended(first, mixture) if second is None else []
    if as_json:
        typer.echo(found.to_json(advice))
        return
    for line in advice:
        Console().print(line, markup=False, highlight=False)
    Console().print(found)


def _methods(texts: list[str] | tuple[str, ...]) -> dict[str, list[str]]:
    """The runs of each training method, from ``NAME=RUN,RUN``."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, sign, runs = text.partition("=")
        if not sign or not name or not options.separated(runs):
            raise UsageError(f"--training {text}: write NAME=RUN,RUN,..., the folders of its seeds")
        found.setdefault(name, []).extend(options.separated(runs))
    return found
