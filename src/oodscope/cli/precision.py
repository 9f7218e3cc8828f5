"""``oodscope precision``: of the flagged images, how many are outliers where outliers are rare?"""

from pathlib import Path
from typing import Annotated

import typer


def precision(
    run: Annotated[Path, typer.Argument(help="Folder of an evaluation.")],
    prevalence: Annotated[
        list[float] | None, typer.Option(help="Share of OOD images in operation; may be given several times.")
    ] = None,
    fpr: Annotated[float, typer.Option(help="Rate of false alarms that the threshold has on ID images.")] = 0.05,
) -> None:
    """Say what share of flagged images is really OOD.

    A detector that catches 80 % of outliers at 5 % false alarms is right about 94 % of what it flags if half of the
    images are OOD, and about 14 % if one of a hundred is.
    """
    from rich.console import Console

    from oodscope.base.errors import UsageError

    for option, value in [("--fpr", fpr), *(("--prevalence", each) for each in prevalence or ())]:
        if not 0 < value < 1:
            raise UsageError(f"precision: {option} lies between 0 and 1; it is {value:g}")

    from oodscope.runs.evaluation.precision import precision_table
    from oodscope.runs.evaluation.run import Result

    Console().print(precision_table(Result.open(run), prevalence or (0.5, 0.1, 0.01), fpr))
