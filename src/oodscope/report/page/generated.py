"""The page of a study of generated sets: what they are, what they do to detectors, whether to believe them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from oodscope.base.files import write_text
from oodscope.document.claim import Claim
from oodscope.document.figure import Figure
from oodscope.document.formats import FORMATS
from oodscope.document.table import Table
from oodscope.report.page.figures import numbered
from oodscope.report.page.templating import data_uri, render_plotted
from oodscope.results.record import RunRecord
from oodscope.runs.generated.claims import claims, judges_recognise
from oodscope.runs.generated.figures import (
    confusion,
    information_histograms,
    orders_of_detectors,
    reliability_of_network,
)
from oodscope.runs.generated.ranks import RankAgreement, rank_agreements
from oodscope.runs.generated.run import GeneratedStudy
from oodscope.runs.generated.sanity import Sanity, SetCheck
from oodscope.runs.generated.table import CIRCULAR, calibration_table, separation_table

CALIBRATION = {
    "ece15": "ECE, 15 bins of equal width",
    "adaptive_ece15": "adaptive ECE, 15 bins of equal mass",
    "classwise_ece15": "class-wise ECE, 15 bins",
}
SEPARATION = {"auroc": "AUROC", "aupr_out": "AUPR (OOD positive)", "aupr_in": "AUPR (ID positive)"}


@dataclass(frozen=True)
class Thumbnail:
    """One image with the class that it came from and the class that judges see."""

    image: str
    original: str
    source: str
    judged: str


def write_generated_study(study: GeneratedStudy, folder: Path | str) -> Path:
    """Write ``report.html`` and its tables as CSV and Markdown; the path of the page.

    The page holds everything it shows and asks no network for anything.
    """
    folder = Path(folder)
    for name, table in (("detectors", separation_table(study)), ("calibration", calibration_table(study))):
        for format in ("csv", "markdown"):
            write_text(folder / f"{name}.{FORMATS[format].ending}", table.render(format))
    path = folder / "report.html"
    write_text(path, render(study))
    return path


@dataclass(frozen=True)
class GeneratedView:
    """Everything that a page shows of a study of generated sets."""

    record: RunRecord
    study: GeneratedStudy
    sanity: Sanity
    claims: list[Claim]
    sheets: dict[str, list[Thumbnail]]
    confusions: list[Figure]
    distances: list[SetCheck]
    histograms: list[Figure]
    perceptual: list[SetCheck]
    separation: list[tuple[str, Table]]
    calibration: list[tuple[str, Table]]
    reliability: list[Figure]
    agreements: list[tuple[str, str, dict[str, RankAgreement]]]
    scopes: list[str]
    orders: list[Figure]
    recognised: float | None = None
    circular_mark: str = CIRCULAR


def render(study: GeneratedStudy) -> str:
    """The page as text."""
    return render_plotted("generated.html", generated=generated_view(study))


def generated_view(study: GeneratedStudy, run: int = 1) -> GeneratedView:
    """What a page shows of a study.

    Parameters
    ----------
    run : the number of the study on the page, which separates its figures from those of others.
    """
    outliers = [*study.sanity.near(), *study.real]
    agreements = rank_agreements(study)
    return GeneratedView(
        record=study.results[0].record,
        study=study,
        sanity=study.sanity,
        claims=claims(study),
        recognised=judges_recognise(study),
        sheets={name: list(_thumbnails(study, name)) for name in study.samples},
        confusions=numbered(_confusions(study), run),
        distances=sorted(_with_distance(study), key=lambda each: each.frechet or 0.0),
        histograms=numbered(information_histograms(study), run),
        perceptual=sorted(
            (each for each in study.sanity.sets if each.perceptual is not None), key=lambda each: each.perceptual or 0.0
        ),
        separation=[(SEPARATION[name], separation_table(study, name)) for name in SEPARATION],
        calibration=[(CALIBRATION[name], calibration_table(study, name)) for name in CALIBRATION],
        reliability=numbered((reliability_of_network(study, name) for name in study.networks), run),
        agreements=list(_by_pair(agreements)),
        scopes=list(dict.fromkeys(each.scope for each in agreements)),
        orders=[] if len(outliers) < 2 else numbered(_orders(study, outliers), run),
    )


def _thumbnails(study: GeneratedStudy, name: str) -> Iterator[Thumbnail]:
    sample, classes = study.samples[name], study.sanity.class_names
    for number, image in enumerate(sample.images):
        original = "" if sample.originals is None else data_uri(sample.originals[number])
        source = "" if sample.source[number] < 0 else classes[sample.source[number]]
        yield Thumbnail(data_uri(image), original, source, classes[sample.judged[number]])


def _confusions(study: GeneratedStudy) -> Iterator[Figure]:
    for each in study.sanity.sets:
        if each.confusion and (each.role == "id_test" or each.name in study.sanity.generated):
            yield confusion(each, study.sanity.class_names)


def _with_distance(study: GeneratedStudy) -> list[SetCheck]:
    return [each for each in study.sanity.sets if each.frechet is not None]


def _by_pair(agreements: Sequence[RankAgreement]) -> Iterator[tuple[str, str, dict[str, RankAgreement]]]:
    for generated, real in dict.fromkeys((each.generated, each.real) for each in agreements):
        mine = [each for each in agreements if (each.generated, each.real) == (generated, real)]
        yield generated, real, {each.scope: each for each in mine}


def _orders(study: GeneratedStudy, sets: Sequence[str]) -> Iterator[Figure]:
    for network in study.networks:
        if (figure := orders_of_detectors(study, network, sets)) is not None:
            yield figure
