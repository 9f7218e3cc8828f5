"""Does cross-validation find what the truth shows, and what can be said of few cells: selections, tables, sentences."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from oodscope.document.number import Number
from oodscope.document.table import Cell, Entry, Row, Table, columns
from oodscope.document.wording import percent
from oodscope.metrics.catalog import METRICS
from oodscope.metrics.comparison.agreement import Rate
from oodscope.metrics.comparison.many_sets import FEWEST_SETS
from oodscope.runs.crossval.plan import Form, forms_of
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.crossval.study import MetricStudy

ALPHA = 0.05

FORMS: dict[Form, str] = {"features": "after the ReLU", "pre_activation": "before the ReLU"}
"""How tables call the forms of the features."""

SET_APART = ("mds", "klm")
"""Detectors so far from the others that their pairs are found by any experiment: rates are shown without them too."""


class Selection(NamedTuple):
    """Some detectors of a study that are compared with each other, one form of each."""

    form: Form
    detectors: str
    study: MetricStudy


def selections(study: MetricStudy) -> list[Selection]:
    """The detectors of each form of the features, the paper's form first: all of them, and all but ``SET_APART``."""
    chosen = []
    for form, names in forms_of(study.detectors).items():
        chosen.append(Selection(form, f"all {len(names)}", study.only(names)))
        rest = [name for name in names if name.partition("(")[0] not in SET_APART]
        if 2 <= len(rest) < len(names):
            without = [name for name in names if name not in rest]
            chosen.append(Selection(form, f"without {', '.join(without)}", study.only(rest)))
    return chosen


def lead(study: MetricStudy) -> MetricStudy:
    """The study of the form of the features that the paper's text means, or of the only one."""
    return selections(study)[0].study


def rates(studies: Sequence[MetricStudy], alpha: float) -> Table:
    """Tables 7 and 8: hit and error rates by metric, with whole numbers, directions and selections of detectors."""
    rows = []
    for study in studies:
        for each in selections(study):
            both, way = each.study.rates(alpha), each.study.directions(alpha)
            right = Rate(way.same, both.hits.pairs)
            entries = [entry for rate in (both.hits, right, both.errors) for entry in _rate(rate)]
            labels = (Entry(METRICS[study.metric].label), Entry(FORMS[each.form]), Entry(each.detectors))
            rows.append(Row(labels, (*entries, Entry(str(way.opposite), way.opposite))))
    heads = columns(
        "hit rate", "hits/pairs", "directional hits", "same winner/pairs", "error rate", "errors/pairs", "wrong winner"
    )
    most = len(studies[0].folds)
    notes = (
        f"Hit rate: cross-validations (of {most}) that find a pair significant, mean over the pairs that differ in "
        "truth. Directional hits: those that also find the same winner. Error rate: hits over the pairs that do not "
        "differ in truth. Wrong winner: significant in the other direction.",
        _truth_note(studies[0]),
    )
    title = f"Hit and error rate by metric, p ≤ {alpha:g}"
    return Table(f"rates-{alpha:g}", title, columns("metric", "features", "detectors"), heads, tuple(rows), notes)


def _rate(rate: Rate) -> tuple[Cell, Cell]:
    return Entry(f"{rate.value:.4f}", rate.value) if rate.pairs else None, Entry(f"{rate.total}/{rate.pairs}")


def _truth_note(study: MetricStudy) -> str:
    if study.disjoint:
        return "The truth is of the half of the images that no cross-validation has seen."
    return "The truth is of the same images as the cross-validations, so both share their luck; see disjoint_truth."


def error_ratios(studies: Sequence[MetricStudy]) -> Table | None:
    """RMSE of a cross-validation over that of as many hold-outs, by metric and selection; None where it is unknown."""
    rows = []
    for study in studies:
        for each in selections(study) if study.has_error_ratio else ():
            found = each.study.error_ratio()
            entry = None if np.isnan(found.value) else Entry(str(found), found.value)
            rows.append(
                Row((Entry(METRICS[study.metric].label), Entry(FORMS[each.form]), Entry(each.detectors)), (entry,))
            )
    if not rows:
        return None
    folds, cells = studies[0].folds.shape[1], len(studies[0].cells)
    notes = (
        f"Below 1, a cross-validation of {folds} folds is nearer to the truth than {folds} plain hold-outs, which "
        f"train as many networks. 95 % interval for other draws of the same {cells} cells.",
        _truth_note(studies[0]),
    )
    title = f"Error of a cross-validation over that of {folds} hold-outs (RMSE)"
    return Table("error-ratio", title, columns("metric", "features", "detectors"), columns("ratio"), tuple(rows), notes)


def accuracies(table: CrossValidationTable) -> Table | None:
    """How many of their ID test images the networks of folds and hold-outs classify rightly; None where unknown."""
    if table.details is None:
        return None
    frame = table.details.networks
    rows = []
    for cell in table.cells:
        own = frame[((frame["training"] == cell.training) & (frame["pair"] == cell.pair)).to_numpy()]
        values = [own[(own["kind"] == kind).to_numpy()]["id_accuracy"].to_numpy() for kind in ("fold", "hold_out")]
        id_set, _, ood_set = cell.pair.partition("/")
        labels = (Entry(cell.training.replace("_", " "), cell.training), Entry(id_set), Entry(ood_set))
        rows.append(Row(labels, tuple(entry for each in values for entry in _spread(each))))
    heads = columns("folds", "lowest fold", "hold-outs", "lowest hold-out")
    notes = ("Mean and standard deviation over the networks, in percent of the ID test images of each.",)
    title = "ID accuracy of the networks"
    return Table("id-accuracy", title, columns("training", "ID", "OOD"), heads, tuple(rows), notes)


def _spread(values: np.ndarray) -> tuple[Cell, Cell]:
    if not len(values):
        return None, None
    sd = float(values.std(ddof=1)) if len(values) > 1 else None
    return Number(float(values.mean()), sd=sd), Entry(percent(values.min()), float(values.min()))


def separations(study: MetricStudy) -> Table | None:
    """Pairs of detectors that differ in each cell alone, over folds and over OOD classes; no other cell is needed."""
    chosen = lead(study)
    if not chosen.has_folds or len(chosen.detectors) < 2:
        return None
    tests, rows = chosen.fold_tests, []
    pairs = len(chosen.detectors) * (len(chosen.detectors) - 1) // 2
    for number, cell in enumerate(chosen.cells):
        own = ((tests["training"] == cell.training) & (tests["pair"] == cell.pair)).to_numpy()
        by_folds = int((tests[own]["p_holm"] <= ALPHA).sum())
        by_classes = chosen.separated_by_classes(number)
        id_set, _, ood_set = cell.pair.partition("/")
        labels = (Entry(cell.training.replace("_", " "), cell.training), Entry(id_set), Entry(ood_set))
        classes = chosen.class_counts[number] if chosen.class_counts else None
        cells = (
            Entry(f"{by_folds}/{pairs}", by_folds),
            None if by_classes is None else Entry(f"{by_classes}/{pairs}", by_classes),
            None if classes is None else Entry(str(classes), classes),
        )
        rows.append(Row(labels, cells))
    heads = columns("these classes", "other OOD classes", "OOD classes")
    notes = (
        f"Pairs of detectors that differ, p ≤ {ALPHA} after Holm over the pairs of a cell. These classes: corrected "
        "resampled t-test over all folds (Nadeau and Bengio 2003). Other OOD classes: paired t-test over OOD classes, "
        "each averaged over repetitions, with C − 1 degrees of freedom.",
    )
    title = f"Pairs of detectors that differ in a cell: {METRICS[study.metric].label}"
    return Table("separations", title, columns("training", "ID", "OOD"), heads, tuple(rows), notes)


def claims(table: CrossValidationTable, study: MetricStudy) -> list[str]:
    """What a study says, in sentences that terminal and pages share; each names its population."""
    return [*_leader(study), *_accuracy(table), *_found(study), *_ratio(study)]


def _leader(study: MetricStudy) -> Iterator[str]:
    order = np.argsort(-study.estimate.mean(axis=1), kind="stable")
    best, *others = (study.detectors[row] for row in order)
    cells = int((study.estimate.argmax(axis=0) == order[0]).sum())
    then = f"; then {others[0]}" if others else ""
    yield f"{best} leads on average, and in {cells} of {len(study.cells)} cells{then}"


def _accuracy(table: CrossValidationTable) -> Iterator[str]:
    if table.details is None:
        return
    plain = table.details.networks
    plain = plain[(plain["training"] == "plain").to_numpy()]
    if plain.empty:
        return
    id_sets = plain["pair"].astype(str).str.partition("/")[0]
    means = plain["id_accuracy"].groupby(id_sets, sort=False).mean()
    listed = ", ".join(f"{name} {percent(value)} %" for name, value in means.items())
    yield f"ID accuracy of the plain networks: {listed}"


def _found(study: MetricStudy) -> Iterator[str]:
    if study.has_truth and study.has_folds and study.testable:
        for each in selections(study):
            both, way = each.study.rates(ALPHA), each.study.directions(ALPHA)
            yield (
                f"differences of the truth that {len(study.folds)} cross-validations find (features "
                f"{FORMS[each.form]}, {each.detectors}, p <= {ALPHA}): hit rate {both.hits}, with the same winner "
                f"{Rate(way.same, both.hits.pairs)}, error rate {both.errors}"
            )
    elif study.has_folds and len(study.detectors) > 1:
        sheet = separations(study)
        if sheet is not None:
            found = "; ".join(_separated(row) for row in sheet.rows)
            yield (
                f"hit rates compare tests over cells and need {FEWEST_SETS}; what {len(study.cells)} can say is which "
                f"pairs differ within each: {found}"
            )


def _separated(row: Row) -> str:
    training, id_set, ood_set = (str(entry.text) for entry in row.labels)
    folds, classes, count = row.cells
    here = f"{id_set}/{ood_set}, {training}: {folds.text if folds else '–'} for these classes"
    if classes is None:
        return f"{here}, too few OOD classes for a statement on others"
    return f"{here}, {classes.text} for other OOD classes (of {count.text if count else '–'})"


def _ratio(study: MetricStudy) -> Iterator[str]:
    if study.has_error_ratio:
        chosen = lead(study)
        ratio = chosen.error_ratio()
        where = "of other images" if study.disjoint else "of other hold-outs of the same images"
        yield (
            f"error of a cross-validation over that of {ratio.hold_outs} hold-outs (RMSE to the truth {where}), "
            f"{METRICS[study.metric].label}, for other draws of these {len(study.cells)} cells: {ratio}"
        )
