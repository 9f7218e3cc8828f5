"""Runs of one recipe as one row; what is not one recipe is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from oodscope.base.errors import DataError
from oodscope.results.measurement import Measurements
from oodscope.runs.evaluation.run import Result
from oodscope.runs.evaluation.seeds import over_seeds
from tests.results.factory import make_record, make_result


def run(seed, **changes):
    """The factory's run as another seed would have left it."""
    rng = np.random.default_rng(seed)
    name = f"seed-{seed}"
    rows = [replace(m, run=name, value=m.value + 0.01 * rng.normal()) for m in make_result().measurements]
    record = make_record(name, model_fingerprint=f"{seed:02x}" * 32, **changes)
    return Result(record, Measurements(rows), make_result().scores)


@pytest.fixture(scope="module")
def runs():
    return [run(seed) for seed in range(3)]


def test_every_number_is_summarised(runs):
    summary = over_seeds(runs, level=0.9)
    assert len(summary.rows) == len(runs[0].measurements)
    for index in (0, 5, 40, -1):
        row = summary.rows[index]
        of_runs = [each.measurements[index] for each in runs]
        assert (row.detector, row.set, row.metric) == (of_runs[0].detector, of_runs[0].set, of_runs[0].metric)
        values = [m.value for m in of_runs]
        assert (row.mean, row.sd) == pytest.approx((np.mean(values), np.std(values, ddof=1)))
        ends = t.interval(0.9, 2, loc=np.mean(values), scale=np.std(values, ddof=1) / np.sqrt(3))
        assert (row.low, row.high) == pytest.approx(ends)
        if of_runs[0].low is not None:
            assert row.within_low == pytest.approx(np.mean([m.low for m in of_runs]))
            assert row.within_high == pytest.approx(np.mean([m.high for m in of_runs]))
        assert row.runs == 3
    assert {row.within_low for row in summary.rows if row.metric == "accuracy"} == {None}
    assert summary.to_dataframe().shape == (len(summary.rows), 14)


def test_the_table_shows_mean_spread_and_both_noises(runs):
    summary = over_seeds(runs)
    table = summary.table(metric="fpr95_id_positive")
    (row,) = [r for r in summary.rows_of("standard", "fpr95_id_positive") if (r.detector, r.set) == ("knn", "digits")]
    shown = f"{100 * row.mean:.2f}±{100 * row.sd:.2f}"
    assert shown in table.render("markdown") and shown in str(table) and shown in table._repr_html_()
    assert shown.replace("±", r"$\pm$") in table.render("latex")
    (line,) = [x for x in json.loads(table.render("json"))["rows"] if x["detector"] == "knn"]
    (cell,) = [c for c in line["cells"] if c["set"] == "digits"]
    assert (cell["value"], cell["low"], cell["sd"]) == (row.mean, row.low, row.sd)
    header, *lines = table.render("csv").splitlines()
    assert header.count(" sd") == 6
    assert f"{row.sd!r}" in "".join(lines)
    assert "95 % (t-3-runs)" in str(table)
    half = np.median([50 * (r.within_high - r.within_low) for r in summary.rows_of("standard", "fpr95_id_positive")])
    assert f"±{half:.2f} within a run" in table.render("markdown")


def test_what_is_not_one_recipe_is_refused(runs):
    fewer = Result(runs[1].record, runs[1].measurements.filter(metric="auroc"), runs[1].scores)
    for results, message in [
        (runs[:1], "at least 2 runs; there is 1"),
        ([], "at least 2 runs; there is 0"),
        ([runs[0], runs[0]], "seed-0 is given twice"),
        ([runs[0], run(7, benchmark_version="2")], "share their benchmark version; seed-0 has '1', seed-7 '2'"),
        ([runs[0], run(7, benchmark="other")], "share their benchmark;"),
        ([runs[0], run(7, model="vit")], "share their model; seed-0 has 'small_cnn', seed-7 'vit'"),
        ([runs[0], fewer], "is missing from one of seed-0 and seed-1"),
        ([runs[0], replace_fingerprint(runs[1], runs[0])], "the same weights"),
    ]:
        with pytest.raises(DataError, match=message):
            over_seeds(results)


def replace_fingerprint(result, like):
    record = result.record.model_copy(update={"model_fingerprint": like.record.model_fingerprint})
    return Result(record, result.measurements, result.scores)
