"""The pages of ``benchmarks/evg_page.py``: sentences follow the cells, and what was not run is named."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import oodscope as oods

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from evg_cells import difference, holm
from evg_page import orders, table_answer, table_page
from evg_samplers_page import chosen_on_tin, forms_answer, sampler_answer, samplers_page
from evg_study import DETECTORS, FEW, FORMED, FORMS, SAMPLERS
from svhn_judge import collapsed

N_ID = 1000


def cell(stage, outliers, detector, variation, sampler, seed, auroc, noise=0.01, chains=60):
    """A finished cell whose ranks average to ``auroc``."""
    rng = np.random.default_rng([seed, len(detector), len(variation)])
    ranks = N_ID * np.clip(auroc + noise * (rng.random(chains) - 0.5), 0, 1)
    ranks += N_ID * auroc - ranks.mean()
    return {
        "stage": stage, "outliers": outliers, "detector": detector, "variation": variation, "sampler": sampler,
        "seed": seed, "form": "s", "energy": "canonical", "chains": chains, "budget": 100, "evaluations": 6000,
        "seconds": 1.0, "device": "processor", "date": "2026-01-01", "clean": 0.9, "auroc": auroc,
        "low": auroc - 0.02, "high": auroc + 0.02, "min_rank": [1] * 5, "clean_min_rank": [9] * 5, "n_id": N_ID,
        "n_train": 50, "curve": {"100": auroc}, "ranks": ranks.tolist(),
    }  # fmt: skip


def compared(lowest, seeds=3):
    """All samplers on both sets; ``lowest`` leaves detectors with 20 points less than the others."""
    return [
        cell(stage, outliers, detector, variation, sampler, seed, 0.4 if sampler == lowest else 0.6)
        for (stage, outliers), detector, variation, sampler, seed in product(
            (("choose", "tin"), ("report", "svhn")), FEW, ("affine", "color"), SAMPLERS, range(seeds)
        )
    ]


def main(values, seeds=3):
    """The main table: attacked AUROC by detector, its clean one in falling order of ``DETECTORS``."""
    found = []
    for place, detector in enumerate(DETECTORS):
        for variation, seed in product(("affine", "color", "affine+color"), range(seeds)):
            made = cell("main", "svhn", detector, variation, "portfolio", seed, values[place], chains=200)
            found.append(made | {"clean": 0.95 - 0.01 * place})
    return found


@pytest.mark.parametrize("best", ["portfolio", "mh T=.1"])
def test_the_choice_is_made_on_one_set_and_told_of_the_other(best):
    found = compared(best)
    assert chosen_on_tin(found) == (best, f"affine: {', '.join(FEW)}; color: {', '.join(FEW)}")
    words = sampler_answer(found)
    assert f"On Tiny ImageNet {best} leaves" in words
    assert f"{best} ends 20.0 points lower than" in words
    assert "lower in 8, higher in 0 and undecided in 0 of 8 pairs" in words


def test_a_sampler_is_chosen_by_what_all_have_attacked():
    part = [each for each in compared("random") if each["variation"] == "affine" and each["detector"] in FEW[:2]]
    assert chosen_on_tin(part) == ("random", f"affine: {', '.join(FEW[:2])}")
    assert chosen_on_tin([each for each in part if each["sampler"] != "portfolio"]) is None
    table = samplers_page(part)
    assert (
        f"mean of {', '.join(FEW[:2])}" in table and "| random | 40.0 | 40.0 | not run | not run | 40.0 | 3 |" in table
    )


def test_a_judge_that_knows_no_digits_is_not_asked():
    made = [each | {"valid": [0.5, 0.4, 0.6], "judge_accuracy": 0.2} for each in main([0.5] * len(DETECTORS))]
    assert "Cannot say: a judge must recognise at least 80.0 %" in table_page(made)
    assert "it recognises 20.0 %" in table_page(made)
    assert "50.0 [40.0–60.0]" in table_page([each | {"judge_accuracy": 0.9} for each in made])


def test_a_judge_that_collapsed_is_not_one():
    labels = np.arange(100) % 10
    images = oods.ImageSet.from_arrays("digits", np.zeros((100, 1, 1, 3), np.uint8), labels, list("0123456789"))
    assert collapsed(images, accuracy=0.9, largest=0.12) is None
    assert "it recognises 70.0 %, less than 80 %" in collapsed(images, accuracy=0.7, largest=0.12)
    assert "one class to 100.0 % of the images, of which 10.0 %" in collapsed(images, accuracy=0.1, largest=1.0)


def test_searches_without_a_gradient_at_the_ends_are_marked():
    old = main([0.5] * len(DETECTORS))
    assert f"‡: {len(old)} of {len(old)} searches use gradients" in table_page(old)
    assert "| msp | 95.0 | 50.0‡ [48.0–52.0]" in table_page(old)
    new = [each | {"gradient at ends": True} for each in old]
    assert "‡" not in table_page(new)
    mixed = samplers_page(compared("portfolio"))
    assert "| portfolio‡ |" in mixed and "| gradient starts‡ |" in mixed and "| mh T=1 |" in mixed


def test_a_change_of_the_score_is_judged_by_the_bar():
    def made(widths):
        return [
            cell("forms", "svhn", detector, variation, sampler, 0, 0.5 + apart * place) | {"form": form}
            for sampler, apart in widths.items()
            for detector, variation in product(FORMED, ("affine", "color"))
            for place, form in enumerate(FORMS)
        ]

    assert "default attack: holds, 4 of 4 cases run of 4" in forms_answer(made({"portfolio": 0.001, "mh T=1": 0.1}))
    assert "does not hold, 0 of 4" in forms_answer(made({"portfolio": 0.02}))
    part = [each for each in made({"portfolio": 0.0}) if each["detector"] == FORMED[0]]
    assert "cannot say, 2 of 2 cases run of 4" in forms_answer(part)
    assert "not run yet" in forms_answer([])


def test_too_few_search_seeds_decide_nothing():
    assert "lower in 0, higher in 0 and undecided in 8 of 8 pairs" in sampler_answer(compared("portfolio", seeds=2))


def test_an_order_is_reversed_only_beyond_noise():
    count = len(DETECTORS)
    kept, turned = [np.linspace(0.8, 0.2, count)[::step].tolist() for step in (1, -1)]
    pairs = count * (count - 1) // 2
    assert f"holds in {pairs}, is reversed in 0" in orders(main(kept), ["affine"])[0]
    assert f"holds in 0, is reversed in {pairs}" in orders(main(turned), ["affine"])[0]
    assert f"cannot be said in {pairs}" in orders(main(turned, seeds=1), ["affine"])[0]
    assert "msp is left with most" in table_answer(main(kept), ["affine", "color", "affine+color"])


def test_seeds_that_disagree_widen_the_interval():
    alike, apart = [
        [cell("main", "svhn", "msp", "color", "portfolio", s, 0.5 + d * s) for s in range(3)] for d in (0, 0.1)
    ]
    other = [cell("main", "svhn", "knn", "color", "portfolio", s, 0.4) for s in range(3)]
    assert difference(alike, other).verdict == "higher"
    assert difference(apart, other).high - difference(apart, other).low > 0.3
    assert difference(apart, other).verdict == "cannot say"


def test_a_family_of_tests_is_stricter_than_each():
    rng = np.random.default_rng(0)
    ones = [
        [cell("main", "svhn", "msp", "color", "portfolio", s, 0.5 + 0.004 * rng.normal()) for s in range(3)]
        for _ in range(200)
    ]
    base = [cell("main", "svhn", "knn", "color", "portfolio", s, 0.5 + 0.004 * rng.normal()) for s in range(3)]
    found = [difference(one, base) for one in ones]
    assert sum(word != "cannot say" for word in holm(found)) <= sum(each.verdict != "cannot say" for each in found)


def test_min_rank_is_a_mean_over_equal_runs():
    text = table_page(main(np.linspace(0.8, 0.2, len(DETECTORS)).tolist()))
    assert "mean over 5 runs of 40 chains" in text
    assert "| msp | 9 ± 0 | 1 ± 0 | 1 ± 0 | 1 ± 0 |" in text


def test_what_was_not_run_is_named_with_the_command():
    for text in (table_page([]), samplers_page([])):
        assert "Cannot say yet" in text
        assert "**Not run yet** (" in text and "evg_study.py" in text
    whole = samplers_page(compared("portfolio"))
    assert "search seed 0" not in whole.split("**Not run yet**")[1].split("forms")[0]
