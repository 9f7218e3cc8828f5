"""The page of the paper's observations: every verdict follows from the rows, and changes with them."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

PLACE = Path(__file__).parents[3] / "benchmarks" / "openood_findings.py"


@pytest.fixture(scope="module")
def findings():
    sys.path.insert(0, str(PLACE.parent))
    spec = importlib.util.spec_from_file_location("openood_findings", PLACE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SETS = {"near": ("cifar100", "tin"), "fs-near": ("cifar100", "tin"), "far": ("svhn_10k", "mnist")}
SETS["near-held"] = ("cifar100", "tin_held_100")


def rows(method, detector, near, *, seeds=3, accuracy=95.0, far=None, full=None, mnist=0.0):
    """Rows of a training's networks, whose seeds differ by a tenth of a point; the same seed alike for all scores."""
    made = []
    levels = {
        "near": near,
        "near-held": near,
        "far": near + 4 if far is None else far,
        "fs-near": near - 12 if full is None else full,
    }
    for seed in range(seeds):
        for group, names in SETS.items():
            for name in names:
                value = levels[group] + 0.1 * seed + (mnist if name == "mnist" else 0.0) + 0.01 * len(name + detector)
                line = (method, seed, "best", accuracy + 0.1 * seed, 90.0, detector, group, name, value)
                made.append(line)
    columns = ["method", "seed", "kept", "accuracy", "csid_accuracy", "detector", "group", "set", "auroc"]
    return pd.DataFrame(made, columns=columns)


def paper(seeds=3, sign=1):
    """Rows as the paper's table has them on CIFAR-10; ``sign=-1`` turns every difference from CE and MSP around."""

    def near(points):
        return 88.0 + sign * points

    plain = [("msp", 0.0), ("react", -1.0), ("ash", -12.0), ("knn", 2.6)]
    made = [rows("CE", name, near(points), seeds=seeds, far=88 + sign * (points + 4), full=near(points) - 12 * sign)
            for name, points in plain]  # fmt: skip
    made.append(rows("CE", "mds_ensemble", 60, seeds=seeds, far=60, mnist=39 * sign))
    better = {"RotPred": ("rotpred", 4.7), "LogitNorm": ("msp", 4.3), "OE": ("msp", 6.8)}
    better |= dict.fromkeys(["Cutout", "RandAugment", "AugMix", "PixMix", "RegMixup"], ("msp", 2.0))
    for method, (detector, points) in better.items():
        accuracy = 95.0 if sign > 0 else 90.0
        numbers = {"seeds": seeds, "far": 88 + sign * (points + 8), "full": near(points) - 10 * sign}
        made.append(rows(method, detector, near(points), accuracy=accuracy, **numbers))
        if detector == "msp":
            made.append(rows(method, "ash", near(points) - sign * 8, accuracy=accuracy, **numbers))
    return pd.concat(made, ignore_index=True)


def observations(findings):
    """The module that the page takes its verdicts from."""
    return sys.modules[findings.Observation.__module__]


def words(findings, tables):
    return {each.claim: verdict.word for each, _, _, verdict in findings.judged(tables)}


def test_what_the_paper_s_rows_say(findings):
    found = words(findings, {"cifar10": paper()})
    needs = {each.claim for each in findings.OBSERVATIONS if each.judge is None and each.across is None}
    assert len(needs) == 3
    expected = dict.fromkeys(needs, "cannot say here") | {"No method wins on all benchmarks": "cannot say here"}
    assert found == {claim: expected.get(claim, "holds") for claim in found}


def test_the_opposite_rows_say_the_opposite(findings):
    found = words(findings, {"cifar10": paper(sign=-1)})
    judged = [each.claim for each in findings.OBSERVATIONS if each.judge is not None]
    assert {found[claim] for claim in judged} == {"does not hold"}, found


def test_one_network_of_each_says_nothing(findings):
    assert set(words(findings, {"cifar10": paper(seeds=1)}).values()) == {"cannot say here"}


def test_what_is_not_run_is_named_and_not_judged(findings):
    table = paper()
    table = table[~table["method"].isin(["RotPred", "OE", "Cutout", "AugMix", "PixMix"])]
    found = {each.claim: verdict for each, _, _, verdict in findings.judged({"cifar10": table})}
    assert found["Training methods excel on small sets"].word == "cannot say here"
    assert "not yet run" in found["Training methods excel on small sets"].reason
    assert found["Augmentation helps detection"].word == "cannot say here", "two of five are no majority"
    assert "not yet run: OE" in found["Outlier data help where test outliers are like them"].reason
    assert found["KNN and RotPred are strong on small sets, not on large ones"].word == "cannot say here"


def test_winners_of_two_id_sets(findings):
    other = pd.concat([rows("CE", "msp", 80), rows("CE", "knn", 79), rows("RotPred", "rotpred", 76)])
    one = pd.concat([rows("CE", "msp", 88), rows("CE", "knn", 90), rows("RotPred", "rotpred", 92)])
    verdict = observations(findings).no_single_winner({"cifar10": one, "cifar100": other})
    assert verdict.word == "holds" and "cifar100: CE with msp" in verdict.reason
    assert observations(findings).no_single_winner({"cifar10": one, "cifar100": one}).word == "does not hold"
    close = pd.concat([rows("CE", "msp", 80), rows("CE", "knn", 79), rows("RotPred", "rotpred", 79.95)])
    assert observations(findings).no_single_winner({"cifar10": one, "cifar100": close}).word == "cannot say here"


def test_noise_between_seeds_is_not_taken_for_a_difference(findings):
    rng = np.random.default_rng(0)
    words_found = []
    for _ in range(60):
        table = pd.concat([rows("CE", "msp", 88), rows("Cutout", "msp", 88), rows("AugMix", "msp", 88)])
        luck = {key: rng.normal() for key in table.groupby(["method", "seed"]).groups}
        table["auroc"] = [value - 0.1 * seed + luck[method, seed] for value, method, seed in
                          zip(table["auroc"], table["method"], table["seed"])]  # fmt: skip
        found = observations(findings).trainings(table, ("Cutout", "msp"), ("CE", "msp"), "near")
        words_found.append(found.sign != 0)
    assert np.mean(words_found) < 0.15


def test_the_first_line_says_what_needs_imagenet(findings, tmp_path):
    file = tmp_path / "table.csv"
    paper().to_csv(file, index=False)
    findings.main([str(tmp_path / "page.md"), f"cifar10={file}", "--measured", "2026-01-01"])
    lines = (tmp_path / "page.md").read_text().splitlines()
    assert lines[0].startswith("**ImageNet is not here:** 3 of 15 observations")
    assert sum(line.startswith("| ") for line in lines) == 15 + 1
    assert "**Answer.** For other seeds: holds 11, does not hold 0, cannot say here 4. " in "\n".join(lines)


def test_exposed_networks_are_compared_on_what_they_are_tested_on(findings):
    """A plain network that is better on the whole set than on its held half is judged by the half."""
    claim = "Outlier data help where test outliers are like them"
    plain = rows("CE", "msp", 88)
    plain.loc[plain["group"] == "near-held", "auroc"] += 5
    assert words(findings, {"cifar10": pd.concat([plain, rows("OE", "msp", 90)])})[claim] == "does not hold"
    without = plain[plain["group"] != "near-held"]
    assert words(findings, {"cifar10": pd.concat([without, rows("OE", "msp", 90)])})[claim] == "cannot say here"


def compared(observation, comparison, points, images=0.2, classes=0.4, rank=None):
    return {"rank": rank, "observation": observation, "comparison": comparison, "points": points,
            "images_error": images, "classes_error": classes, "classes_freedom": 20.0, "train": 50,
            "test": 20}  # fmt: skip


class TestOneNetwork:
    """Comparisons on one network are judged for other images and OOD classes, apart from other seeds."""

    def verdicts(self, findings, *lines, **more):
        evidence = {"cifar10": pd.DataFrame(lines)} | {name: pd.DataFrame(each) for name, each in more.items()}
        return {(each.claim, known): verdict for each, known, population, verdict in findings.judged({}, evidence)
                if population == findings.ONE}  # fmt: skip

    def test_a_difference_counts_where_it_is_beyond_both_errors(self, findings):
        claim = "ReAct and ASH, strong on ImageNet, are not on CIFAR", "cifar10"
        for react, ash, word in ((-3, -9, "holds"), (-3, 9, "does not hold"), (-0.5, -9, "cannot say here")):
            found = self.verdicts(findings, compared("rectifiers", "react", react), compared("rectifiers", "ash", ash))
            assert found[claim].word == word and set(found) == {claim}

    def test_what_no_plain_network_shows_stays_open(self, findings):
        claim = "KNN and RotPred are strong on small sets, not on large ones", "cifar10"
        verdict = self.verdicts(findings, compared("neighbours", "KNN above MSP", 5.0))[claim]
        assert verdict.word == "cannot say here" and "RotPred above MSP: not yet run" in verdict.reason

    def test_what_rises_together_needs_a_rank_above_zero(self, findings):
        claim = "Near-OOD is harder than far-OOD, and both rise together", "cifar10"
        for points, rank, word in ((5, 0.9, "holds"), (5, -0.1, "cannot say here"), (-5, 0.9, "does not hold")):
            verdict = self.verdicts(findings, compared("far", "far above near", points, rank=rank))[claim]
            assert verdict.word == word and verdict.reason.endswith(f"Spearman {rank:.2f} over scores")

    def test_winners(self, findings):
        def pairs(**levels):
            return [
                compared("winners", f"{a} above {b}", levels[a] - levels[b]) for a in levels for b in levels if a != b
            ]

        claim = "No method wins on all benchmarks", "all"
        other = pairs(knn=80, msp=90, vim=70)
        found = self.verdicts(findings, *pairs(knn=90, msp=80, vim=70), cifar100=other)[claim]
        assert found.word == "holds" and "cifar10: the best may be knn;" in found.reason
        assert self.verdicts(findings, *other, cifar100=other)[claim].word == "does not hold"
        close = self.verdicts(findings, *pairs(knn=90, msp=89.5, vim=70), cifar100=other)[claim]
        assert close.word == "cannot say here" and close.reason.endswith("on all may be msp")
        assert self.verdicts(findings, *other)[claim].word == "cannot say here", "one ID set is not all"

    def test_the_page_names_the_population(self, findings, tmp_path):
        table, evidence = tmp_path / "table.csv", tmp_path / "evidence.csv"
        paper().to_csv(table, index=False)
        pd.DataFrame([{"known": "cifar10", **compared("shift", "near", 9.0)}]).to_csv(evidence, index=False)
        findings.main([str(tmp_path / "page.md"), f"cifar10={table}", "--evidence", str(evidence)])
        page = (tmp_path / "page.md").read_text()
        assert f"| Covariate shift lowers near-OOD AUROC | cifar10 | {findings.ONE} | holds | near: +9.00 (p = " in page
        assert "fitted on 50 training images and compared on 20 images" in page and "evidence.csv`" in page
