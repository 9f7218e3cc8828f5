"""The transfer matrix of an attack: do images found against one detector fool the others?"""

from collections.abc import Sequence

from oodscope.report.plots.marks import heat, layout, names, square
from oodscope.report.plots.plot import PlotlyFigure, figure_name
from oodscope.runs.attack.run import TRANSFER, Attack

_HOVER = "%{y} has AUROC %{z:.2%}<br>on images found against %{x}"


def transfer_matrix(attack: Attack, variation: str, detectors: Sequence[str] | None = None) -> PlotlyFigure:
    """AUROC of each detector on the images that were found against another one.

    Parameters
    ----------
    detectors : in the order of rows and columns; those of the attack by default.
    """
    chosen = list(detectors or attack.detectors)
    rows = attack.result.measurements.filter(protocol=TRANSFER, group=variation)
    found = {(row.detector, row.set): row.value for row in rows}
    cells = [[found.get((judge, against)) for against in chosen] for judge in chosen]
    return PlotlyFigure(
        figure_name("transfer", variation),
        f"{variation}: do images found against one detector fool the others?",
        "Rows: the detector that judges. Columns: the one that was attacked. On the diagonal each meets its own worst "
        "images. A strong row holds against images found for others; a pale column finds images that fool everyone.",
        (heat(cells, chosen, chosen, _HOVER, zmin=0, zmax=1, written=".0%"),),
        layout(names("attacked"), names("judges", autorange="reversed"), height=square(len(chosen))),
    )
