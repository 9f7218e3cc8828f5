"""The verdict says who leads, how sure that is and what speaks against it, and claims nothing that was not measured."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oodscope.document.number import Number
from oodscope.document.trial import APART, BY_VALUE, NEMENYI, PAIRED, Entry, in_order
from oodscope.report.page.page import render
from oodscope.report.page.placing import placed_trials
from oodscope.report.page.verdict import verdicts
from oodscope.results.measurement import Measurement, Measurements
from oodscope.runs.attack.run import Attack
from oodscope.runs.evaluation.run import Result
from tests.report.reading import read
from tests.report.whole_runs import attack_of, crossval, judged, table
from tests.results.factory import make_record, make_scores


def near(detector, value, low=None, high=None, tuning="default", group="near", rank=None):
    ranks = {} if rank is None else {"rank_low": rank[0], "rank_high": rank[1]}
    return Measurement(
        run="glyphs-small_cnn-0",
        benchmark="b",
        benchmark_version="1",
        model="m",
        protocol="standard",
        set="mean",
        group=group,
        metric="auroc",
        tuning=tuning,
        detector=detector,
        value=value,
        low=low,
        high=high,
        **ranks,
    )


def told(*rows):
    result = Result(make_record(protocols=["standard"]), Measurements(rows), make_scores())
    return verdicts([result], placed_trials([result]))


def said(*rows):
    return [f"{each.leader.detector}: {each.sureness}" for each in told(*rows)]


def test_a_clear_lead_is_called_clear():
    assert said(near("a", 0.9, 0.88, 0.92), near("b", 0.8, 0.78, 0.82)) == [
        "a: 10.00 points ahead of b; none of 1 other may be best."
    ]
    (text,) = said(near("a", 0.9, 0.88, 0.92), near("b", 0.8, 0.78, 0.82), near("c", 0.7, 0.6, 0.8))
    assert text.endswith("none of 2 others may be best.")


def test_a_lead_within_noise_is_called_so():
    (text,) = said(near("a", 0.9, 0.85, 0.92), near("b", 0.89, 0.84, 0.91))
    assert text == "a: 1.00 points ahead of b; 1 of 1 others may be best too: b."
    (text,) = said(*(near(name, 0.9 - i / 1000, 0.8, 0.95) for i, name in enumerate("abcdef")))
    assert text == "a: 0.10 points ahead of b; 5 of 5 others may be best too: b, c, d and 2 more."
    # the second lies clear, a third with a wide interval does not
    (text,) = said(near("a", 0.9, 0.88, 0.92), near("b", 0.87, 0.865, 0.875), near("c", 0.86, 0.8, 0.89))
    assert text == "a: 3.00 points ahead of b; 1 of 2 others may be best too: c."


def test_paired_tests_go_before_intervals():
    rows = [near("a", 0.9, 0.8, 0.95, rank=(1, 1)), near("b", 0.89, 0.8, 0.95, rank=(2, 2))]
    (verdict,) = told(*rows)
    assert verdict.trial.ranked_by == PAIRED and verdict.leader.rank == "1"
    assert verdict.sureness.endswith("none of 1 other may be best for other images of these classes.")


def test_the_sentence_and_the_marks_speak_of_the_same_detectors():
    """Who may be best is what the sentence counts; a rank that starts at 1 does not make it so, nor the other way."""
    rows = [near("a", 0.9, 0.8, 0.95, rank=(1, 3)), near("b", 0.89, 0.8, 0.95, rank=(1, 3))]
    rows.append(near("c", 0.88, 0.8, 0.95, rank=(1, 3)))
    best = [replace(row, may_be_best=int(row.detector != "c")) for row in rows]
    (text,) = said(*best)
    wanted = "a: 1.00 points ahead of b; 1 of 2 others may be best too for other images of these classes: b."
    assert text == wanted
    wider = [replace(row, class_rank_low=1, class_rank_high=3, class_may_be_best=1) for row in best]
    (text,) = said(*wider)
    assert text.endswith("2 of 2 others may be best too for other OOD classes: b and c.")


def test_what_is_not_known_is_not_claimed():
    (verdict,) = told(near("a", 0.9), near("b", 0.8))
    assert verdict.trial.ranked_by == BY_VALUE
    assert verdict.sureness.endswith("; without intervals, how much of the lead is noise is not known.")
    (verdict,) = told(near("a", 0.9, 0.8, 0.95))
    assert verdict.sureness == "It is the only detector of this track, so nothing is compared."


def test_tracks_and_groups_are_told_apart():
    found = told(near("a", 0.8, 0.7, 0.85), near("b", 0.7, 0.6, 0.75), near("c", 0.99, 0.9, 1.0, tuning="ood_val"))
    assert [(each.leader.detector, each.size) for each in found] == [("a", 2), ("c", 1)]
    (verdict,) = told(near("a", 0.8, group="far"), near("b", 0.7, group="far"))
    assert verdict.trial.what == "far-OOD AUROC"


SIXTEENTHS = st.integers(0, 16)  # exact in binary, and often equal: intervals that touch overlap
VALUES = st.lists(st.tuples(SIXTEENTHS, st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6)


@given(VALUES, st.booleans())
def test_ranks_by_intervals_count_who_lies_clear(values, higher):
    given_entries = [
        Entry(f"d{place}", "default", Number(value / 16, (value - below) / 16, (value + above) / 16))
        for place, (value, below, above) in enumerate(values)
    ]
    found = in_order(given_entries, higher)
    best = [entry.cell.value for entry in found]
    assert best == sorted(best, reverse=higher)
    for place, entry in enumerate(found):
        clear = [other.cell for other in found if other.cell.low > entry.cell.high]
        under = [other.cell for other in found if other.cell.high < entry.cell.low]
        better, worse = (clear, under) if higher else (under, clear)
        assert entry.cell.rank == (1 + len(better), len(found) - len(worse))
        assert entry.cell.rank[0] <= place + 1 <= entry.cell.rank[1]
        assert entry.cell.best == (len(found) > 1 and entry.cell.value == best[0])


def test_a_cross_validation_is_its_mean_over_folds_and_cells():
    folds = table().frame.query("kind == 'fold' and metric == 'auroc'")
    (trial,) = crossval().trials()
    assert [each.anchor for each in placed_trials([judged(), crossval()])][-1] == "crossval-1"
    assert trial.ranked_by == NEMENYI and trial.anchor == "crossval"
    for entry in trial.entries:
        own = folds[folds["detector"] == entry.detector]
        assert abs(entry.cell.value - own["value"].mean()) < 1e-12
        assert entry.cell.low < entry.cell.value < entry.cell.high
    ranks = folds.groupby(["training", "pair", "detector"], observed=True)["value"].mean().unstack().rank(axis=1)
    average = (len(trial.entries) + 1 - ranks).mean()
    for one in trial.entries:
        for other in trial.entries:
            if one.cell.rank[1] < other.cell.rank[0]:
                assert average[one.detector] < average[other.detector]


def test_lower_is_better_where_decisions_are_counted():
    by_name = {trial.protocol: trial for trial in judged().trials()}
    human = by_name["human_centric"]
    assert (human.arrow, human.ranked_by, human.what) == ("↓", APART, "DER95 (val correct), mean of all sets")
    values = [entry.cell.value for entry in human.track("default")]
    assert values == sorted(values) and by_name["standard"].arrow == "↑"


def test_what_speaks_against_a_leader_is_the_worst_that_was_measured():
    runs = [judged(), attack_of(judged()), crossval()]
    for verdict in verdicts(runs, placed_trials(runs)):
        name, found = verdict.leader.detector, {each.kind: each for each in verdict.weaknesses}
        rows = judged().measurements.filter(detector=name)
        if verdict.trial.protocol != "crossval":
            aurocs = [r for r in rows.filter(metric="auroc") if r.set != "mean" and r.group in ("near", "far")]
            aurocs = [r for r in aurocs if r.protocol in ("standard", "full_spectrum")]
            worst = min(aurocs, key=lambda row: row.value)
            assert (found["worst set"].value, found["worst set"].anchor[:-2]) == (
                worst.value,
                worst.protocol.replace("_", "-"),
            )
            ders = rows.filter(protocol="human_centric", metric="der95_val_correct")
            assert found["worst error"].value == max(row.value for row in ders if row.set != "mean")
        attacked = runs[1].result.measurements.filter(protocol="attack", metric="auroc", detector=name)
        if attacked:
            clean = attacked.filter(group="clean")[0].value
            fall = found["largest fall"]
            assert clean - fall.value == max(clean - row.value for row in attacked)
            assert f"AUROC {100 * clean:.2f} →" in fall.before
        folds = table().frame.query("kind == 'fold' and metric == 'auroc'")
        folds = folds[folds["detector"] == name]
        if len(folds):
            spread = folds.groupby(["training", "pair", "repetition"], observed=True)["value"].std()
            worst = spread.groupby(["training", "pair"], observed=True).mean().max()
            np.testing.assert_allclose(found["unstable folds"].value, worst)
        else:
            assert "unstable folds" not in found


def test_another_networks_fall_is_not_held_against_a_detector():
    stranger = attack_of(judged(), model_fingerprint="cd" * 32)
    runs = [judged(), stranger]
    for verdict in verdicts(runs, placed_trials(runs)):
        kinds = {each.kind for each in verdict.weaknesses}
        assert ("largest fall" in kinds) == (verdict.trial.protocol == "attack")


def test_a_leader_keeps_its_doubts_wherever_it_is_named():
    """0.1: the card of the attack's leader gave a number that the scorecard doubted, without any mark."""
    found = attack_of(judged())
    stopped = [replace(each, flags=("stopped while still falling",)) for each in found.searches]
    (trial,) = Attack(found.result, stopped).trials()
    assert all(entry.cell.doubts == ("shift: stopped while still falling",) for entry in trial.entries)
    runs = [judged(), Attack(found.result, stopped)]
    page = read(render(runs))
    (first,) = page.all("section", id="verdict")
    marked = [each.parent for each in first.all("sup") if each.attributes.get("class") == "doubt"]
    assert marked and all("stopped while still falling" in each.attributes["title"] for each in marked)
    assert "at most" in first.text
    (said,) = [each.sureness for each in verdicts(runs, [trial])]
    assert said.endswith("by numbers in doubt (*): whether it leads cannot be said.")
