"""The page of a study of generated sets: what they are, what they do to detectors, whether to believe them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup

from oodscope.base.files import write_text
from oodscope.document.formats import FORMATS
from oodscope.document.table import Table
from oodscope.report.generated_figures import confusion_matrix, information_histogram, radar, reliability_diagram
from oodscope.report.page.templating import data_uri, render_page
from oodscope.report.svg import style_of
from oodscope.results.record import RunRecord
from oodscope.runs.generated.claims import Claim, claims
from oodscope.runs.generated.ranks import RankAgreement, rank_agreements
from oodscope.runs.generated.run import RELIABILITY, GeneratedStudy
from oodscope.runs.generated.sanity import Sanity, SetCheck
from oodscope.runs.generated.table import CIRCULAR, calibrated_sets, calibration_table, separation_table

CALIBRATION = {
    "ece15": "ECE, 15 bins of equal width",
    "adaptive_ece15": "adaptive ECE, 15 bins of equal mass",
    "classwise_ece15": "class-wise ECE, 15 bins",
}
SEPARATION = {"auroc": "AUROC", "aupr_out": "AUPR (OOD positive)", "aupr_in": "AUPR (ID positive)"}


@dataclass(frozen=True)
class Sight:
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
    sheets: dict[str, list[Sight]]
    confusions: list[tuple[SetCheck, Markup]]
    distances: list[SetCheck]
    histograms: list[tuple[str, list[tuple[SetCheck, Markup]]]]
    perceptual: list[SetCheck]
    separation: list[tuple[str, Table]]
    calibration: list[tuple[str, Table]]
    reliability: list[tuple[str, list[tuple[str, float, Markup]]]]
    agreements: list[tuple[str, str, dict[str, RankAgreement]]]
    scopes: list[str]
    styles: dict[str, str]
    radars: list[tuple[str, Markup]]
    circular_mark: str = CIRCULAR


def render(study: GeneratedStudy) -> str:
    """The page as text."""
    return render_page("generated.html", generated=generated_view(study))


def generated_view(study: GeneratedStudy) -> GeneratedView:
    """What a page shows of a study."""
    foreign = [*study.sanity.near(), *study.real]
    styles = {name: style_of(number) for number, name in enumerate(foreign)}
    agreements = rank_agreements(study)
    return GeneratedView(
        record=study.results[0].record,
        study=study,
        sanity=study.sanity,
        claims=claims(study),
        sheets={name: list(_sights(study, name)) for name in study.samples},
        confusions=list(_confusions(study)),
        distances=sorted(_with_distance(study), key=lambda each: each.frechet or 0.0),
        histograms=list(_histograms(study)),
        perceptual=sorted(
            (each for each in study.sanity.sets if each.perceptual is not None), key=lambda each: each.perceptual or 0.0
        ),
        separation=[(SEPARATION[name], separation_table(study, name)) for name in SEPARATION],
        calibration=[(CALIBRATION[name], calibration_table(study, name)) for name in CALIBRATION],
        reliability=list(_reliability(study)),
        agreements=list(_by_pair(agreements)),
        scopes=list(dict.fromkeys(each.scope for each in agreements)),
        styles=styles,
        radars=[] if len(foreign) < 2 else list(_radars(study, foreign, styles)),
    )


def _sights(study: GeneratedStudy, name: str) -> Iterator[Sight]:
    sample, classes = study.samples[name], study.sanity.class_names
    for number, image in enumerate(sample.images):
        original = "" if sample.originals is None else data_uri(sample.originals[number])
        source = "" if sample.source[number] < 0 else classes[sample.source[number]]
        yield Sight(data_uri(image), original, source, classes[sample.judged[number]])


def _confusions(study: GeneratedStudy) -> Iterator[tuple[SetCheck, Markup]]:
    for each in study.sanity.sets:
        if each.confusion and (each.role == "id_test" or each.name in study.sanity.generated):
            title = f"{each.name}: class of origin against the class that judges see"
            yield each, confusion_matrix(each.confusion, study.sanity.class_names, title)


def _with_distance(study: GeneratedStudy) -> list[SetCheck]:
    return [each for each in study.sanity.sets if each.frechet is not None]


def _histograms(study: GeneratedStudy) -> Iterator[tuple[str, list[tuple[SetCheck, Markup]]]]:
    """Under the judges, and under the makers where they were at hand."""
    sanity = study.sanity
    (known,) = (each for each in sanity.sets if each.role == "id_test")
    for words, field, members in (
        ("judges", "information", len(sanity.judges)),
        ("makers", "made_information", len(sanity.makers)),
    ):
        reference: Sequence[int] = getattr(known, field)
        if not reference:
            continue
        others = [each for each in sanity.sets if each.role not in ("id_test", "id_val")]
        shown = [each for each in others if each.role != "csid" or each.name in sanity.generated]
        figures = []
        for number, each in enumerate(shown):
            title = f"{each.name}: mutual information of the {words}"
            counts, edges = getattr(each, field), sanity.edges(members)
            figure = information_histogram(reference, counts, edges, sanity.window, title, style_of(number))
            figures.append((each, figure))
        yield words, figures


def _reliability(study: GeneratedStudy) -> Iterator[tuple[str, list[tuple[str, float, Markup]]]]:
    errors = study.calibration()
    for result in study.results:
        network, bins = result.record.model, result.scores.context.extra[RELIABILITY]
        order = [name for name in calibrated_sets(study) if name in bins]
        figures = [
            (name, errors[network, name].value, reliability_diagram(bins[name], f"{network}, {name}", style_of(number)))
            for number, name in enumerate(order)
        ]
        yield network, figures


def _by_pair(agreements: Sequence[RankAgreement]) -> Iterator[tuple[str, str, dict[str, RankAgreement]]]:
    for generated, real in dict.fromkeys((each.generated, each.real) for each in agreements):
        mine = [each for each in agreements if (each.generated, each.real) == (generated, real)]
        yield generated, real, {each.scope: each for each in mine}


def _radars(study: GeneratedStudy, sets: Sequence[str], styles: dict[str, str]) -> Iterator[tuple[str, Markup]]:
    found = study.separation("auroc")
    for network in study.networks:
        detectors = list(dict.fromkeys(detector for model, detector, _ in found if model == network))
        if len(detectors) < 3:
            continue
        values = {name: np.array([found[network, each, name].value for each in detectors]) for name in sets}
        yield network, radar(values, detectors, styles, f"{network}: AUROC of each detector, stretched set by set")
