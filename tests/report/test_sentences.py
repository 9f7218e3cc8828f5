"""The sentences that open a page: each follows from the numbers, names what fails, and is said once."""

import numpy as np
import pytest

from oodscope.document.claim import Claim, claims_verdict
from oodscope.report.page.networks import distinctions, network_name
from oodscope.report.page.page import write_report
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.attack.run import Attack
from oodscope.runs.attack.verdict import attack_verdict, broken_first
from oodscope.runs.comparison.advice import advise
from oodscope.runs.evaluation.run import Result
from oodscope.runs.models.verdict import models_verdict
from tests.report.reading import read
from tests.report.whole_runs import attacked, judged


def trained(recipe, mark):
    """The same evaluation, as if of another network."""
    own = judged()
    scores = ScoreTable(own.scores.frame, own.scores.context.model_copy(update={"recipe": recipe}))
    return Result(own.record.model_copy(update={"model_fingerprint": mark}), own.measurements, scores)


@pytest.mark.slow
def test_what_is_recommended_for_near_is_said_once(tmp_path):
    page = read(write_report(judged(), tmp_path / "one.html").read_text(encoding="utf-8"))
    said = advise(judged()).claim
    (first,) = page.all("section", id="verdict")
    assert " ".join(first.text.split()).count(said) == 1
    assert "On far OOD" in first.text, "the other kinds of OOD have their sentence"


def test_networks_of_one_name_are_told_apart_by_their_training():
    runs = [trained("CrossEntropy", "aaaaaaaa"), trained("ConfBranch", "bbbbbbbb")]
    apart = distinctions(runs)
    assert [network_name(each.record, apart) for each in runs] == ["small_cnn (CrossEntropy)", "small_cnn (ConfBranch)"]
    same = [trained("CrossEntropy", "aaaaaaaa"), trained("CrossEntropy", "bbbbbbbb")]
    apart = distinctions(same)
    assert [network_name(each.record, apart) for each in same] == ["small_cnn (aaaaaa)", "small_cnn (bbbbbb)"]
    assert distinctions(runs[:1]) == {} and network_name(runs[0].record, {}) == "small_cnn"


def flagged(attack, *flags):
    """The attack, as if all its searches had ended so."""
    return Attack(attack.result, [each.__class__(**{**vars(each), "flags": flags}) for each in attack.searches])


def test_an_attack_names_the_broken_detector_first_and_its_bounds():
    attack = attacked()
    own = attack.measurements.filter(protocol="attack", metric="auroc", group="shift")
    rows = {row.detector: row.value for row in own}
    worst, best = min(rows, key=rows.get), max(rows, key=rows.get)
    assert broken_first(attack) == [worst, best]
    stopped = attack_verdict(flagged(attack, "still falling"))
    assert stopped.startswith(f"{worst} is broken most: under shift its AUROC falls from ") and "to at most" in stopped
    assert f"{len(attack.searches)} of {len(attack.searches)} searches stopped too early" in stopped
    done = attack_verdict(flagged(attack))
    assert f"None of the {len(attack.searches)} searches" in done and "at most" not in done


def test_claims_that_fail_are_named():
    claims = [Claim("it is near", True, ""), Claim("it is nearer than svhn", False, ""), Claim("it ranks", None, "")]
    assert claims_verdict(claims) == "1 of 3 claims holds, 1 fails, 1 cannot be said. Not: it is nearer than svhn."
    assert claims_verdict(claims[:1]) == "1 of 1 claims holds." and claims_verdict([]) == ""


def test_few_networks_cannot_say_and_many_can():
    rng = np.random.default_rng(0)
    values = 0.3 + 0.01 * rng.normal(size=(12, 2))
    values[:, 1] += 0.05
    said = models_verdict(values, ["knn", "msp"], "der99_val_correct")
    assert (
        said.startswith("knn has the lowest ")
        and "in 12 of 12 models" in said
        and "it is lower than that of msp" in said
    )
    assert "cannot say with 3" in models_verdict(values[:3], ["knn", "msp"], "der99_val_correct")
    noise = models_verdict(0.3 + 0.05 * rng.normal(size=(8, 2)), ["knn", "msp"], "der99_val_correct")
    assert "not shown to be lower than" in noise
    assert "only detector" in models_verdict(values[:, :1], ["knn"], "der99_val_correct")
