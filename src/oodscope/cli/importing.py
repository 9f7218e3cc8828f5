"""``oodscope import``: scores and results of other tools, up to our tables and report."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options
from oodscope.cli.choices import Intervals

FORMAT = "Format"


def importing(
    sets: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files of scores: ROLE:NAME=FILE.npz, such as near:birds=b.npz; {detector} in FILE stands for each "
            "of --detectors."
        ),
    ] = None,
    openood: Annotated[
        list[str] | None,
        typer.Option(rich_help_panel=options.DATA, help="Result CSVs of OpenOOD: DETECTOR=FILE.csv."),
    ] = None,
    pytorch_ood: Annotated[
        Path | None,
        typer.Option(
            "--pytorch-ood",
            rich_help_panel=options.DATA,
            help="Result dictionaries of pytorch-ood: a .json list, or the .csv of their data frame.",
        ),
    ] = None,
    detectors: Annotated[
        list[str] | None,
        typer.Option("--detectors", "-d", rich_help_panel=options.DETECTORS, help=f"Their names. {options.LIST}"),
    ] = None,
    score: Annotated[str, typer.Option(rich_help_panel=FORMAT, help="Array of the scores.")] = "conf",
    prediction: Annotated[str, typer.Option(rich_help_panel=FORMAT, help="Array of predicted classes.")] = "pred",
    label: Annotated[str, typer.Option(rich_help_panel=FORMAT, help="Array of true classes.")] = "label",
    larger_is_ood: Annotated[
        bool,
        typer.Option("--larger-is-ood", rich_help_panel=FORMAT, help="Scores grow with OOD; by default with ID."),
    ] = False,
    benchmark: Annotated[str, typer.Option(rich_help_panel=options.DATA, help="What tables call the data.")] = "import",
    model_name: options.ModelName = "",
    output: options.Output = Path("runs"),
    as_json: options.AsJson = False,
    intervals: Annotated[
        Intervals, typer.Option(help="full: analytic, else 1,000 bootstrap replicates; fast: 200; none.")
    ] = Intervals.FULL,
) -> None:
    """Import scores or results of other tools.

    Scores of .npz files (arrays as OpenOOD saves them, names configurable) become an evaluation like any other, with
    intervals, comparison and report. Tables of results are shown as reported, unranked. Pickles are never read.
    """
    from oodscope.base.errors import UsageError

    given = [name for name, each in (("files", sets), ("--openood", openood), ("--pytorch-ood", pytorch_ood)) if each]
    if len(given) != 1:
        found = f"there are {' and '.join(given)}" if given else "there is nothing"
        raise UsageError(f"import: pass files of scores, or --openood, or --pytorch-ood; {found}")
    if sets:
        from oodscope.cli.output import show
        from oodscope.jobs.storing import save_result
        from oodscope.runs.evaluation.scores import evaluate_scores
        from oodscope.runs.interchange.npz import ArrayNames, read_score_arrays

        names = ArrayNames(score, prediction, label, larger_is_ood)
        frame = read_score_arrays(_files(sets, options.separated(detectors) or ["imported"]), names)
        result = evaluate_scores(frame, name=benchmark, model=model_name or "imported", intervals=intervals.value)
        show((result, save_result(result, output)), as_json=as_json)
        return

    import json

    from rich.console import Console

    from oodscope.report.page.page import write_report
    from oodscope.runs.interchange.reported import read_dictionaries, read_openood, reported

    if openood:
        rows, source = read_openood(_named_files(openood)), "OpenOOD"
    else:
        assert pytorch_ood is not None
        rows, source = read_dictionaries(pytorch_ood), "pytorch-ood"
    run = reported(rows, source, benchmark=benchmark, model=model_name or "imported")
    folder = run.save(output / run.record.id)
    write_report(run, folder / "report.html")
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), "rows": [row.model_dump() for row in run.rows]}))
        return
    Console().print(run.table())
    typer.echo(f"report: {folder / 'report.html'}")


def _files(sets: list[str], detectors: list[str]) -> dict[tuple[str, str], dict[str, Path]]:
    from oodscope.base.errors import UsageError

    files: dict[tuple[str, str], dict[str, Path]] = {}
    for text in sets:
        place, sign, file = text.partition("=")
        role, _, name = place.partition(":")
        if not sign or not file:
            raise UsageError(f"import: {text!r}: write ROLE=FILE or ROLE:NAME=FILE, such as near:birds=b.npz")
        if len(detectors) > 1 and "{detector}" not in file:
            raise UsageError(f"import: {text!r}: for several detectors write {{detector}} where its name stands")
        key = (role, name or (role if role in ("id_test", "id_val") else Path(file).stem))
        if key in files:
            raise UsageError(f"import: {place} is given twice; name each set once")
        files[key] = {each: Path(file.replace("{detector}", each)) for each in detectors}
    return files


def _named_files(given: list[str]) -> dict[str, Path]:
    from oodscope.base.errors import UsageError

    files = {}
    for text in options.separated(given):
        name, sign, file = text.partition("=")
        if not sign or not file or name in files:
            raise UsageError(f"import: --openood {text}: write DETECTOR=FILE.csv, each detector once")
        files[name] = Path(file)
    return files
