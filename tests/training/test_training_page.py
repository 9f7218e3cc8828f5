"""The page of trained methods says what made-up tables of scores contain, and no more."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import training_page as pages
from training_findings import HOLDS, Estimate, contrast, mean_placements, over_seeds, placements, pooled, satterthwaite
from training_rows import lines_of
from training_table import summary

CLASSES, EACH = 30, 8


def frame(seed, near=1.0, shifted=0.5, noise=0.2, score="msp", csid=True):
    """Scores of one network: known images at 0, their copies at ``shifted``, outliers at ``near`` on average.

    Images and classes keep what is their own in every network; ``noise`` is the network's.
    """
    fixed, own = np.random.default_rng(7), np.random.default_rng(seed)
    parts = []
    roles = [("id_test", "id_test", 0.0, 400), ("csid", "corrupted", shifted, 400 if csid else 0)]
    roles += [("near", name, near, CLASSES * EACH) for name in ("cifar100", "tin")]
    for role, name, centre, count in roles:
        classes = np.arange(count) % CLASSES
        effect = fixed.normal(0, 0.3, CLASSES)[classes] if role == "near" else 0.0
        scores = centre + effect + fixed.normal(0, 1, count) + own.normal(0, noise, count)
        right = np.arange(count) % 10 > (0 if role == "id_test" else 2)
        parts.append(
            pd.DataFrame({"role": role, "set": name, "own_class": classes, score: scores.astype(np.float32)}).assign(
                label=classes if role != "near" else -1, prediction=np.where(right, classes, -2), kept="best"
            )
        )
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Tables of scores of a few methods: LogitNorm better, T2FNorm equal, Cutout worse, AugMix robust, PixMix once."""
    folder = tmp_path_factory.mktemp("scores")
    networks = {
        "CE": [frame(seed, 1.0) for seed in range(3)],
        "CE-tf32": [frame(10 + seed, 1.0) for seed in range(3)],
        "LogitNorm": [frame(20 + seed, 1.6) for seed in range(3)],
        "T2FNorm": [frame(30 + seed, 1.0) for seed in range(3)],
        "Cutout": [frame(40 + seed, 0.6) for seed in range(3)],
        "AugMix": [frame(50 + seed, 1.0, shifted=0.0) for seed in range(3)],
        "PixMix": [frame(60, 1.4)],
    }
    for method, frames in networks.items():
        for seed, each in enumerate(frames):
            each.to_parquet(folder / f"{method}-{seed}.parquet")
    return folder, table_of(folder)


def table_of(folder):
    """The rows of all networks whose scores lie in a folder."""
    parts = [(path.stem.rpartition("-"), pd.read_parquet(path)) for path in sorted(folder.glob("*.parquet"))]
    return pd.concat([summary(part, name[0], int(name[2])) for name, part in parts], ignore_index=True)


def rows(sd=0.25):
    """A board with a row for each training that is reproduced."""
    lines = [line for line in lines_of("cifar10").values() if line.published]
    return pd.DataFrame(
        [
            {
                "Training": line.published[0],
                "Postprocessor": line.published[1],
                "Outlier_Data": "Yes" if line.exposed else "No",
                "near": 88.0,
                "near_sd": sd,
                "accuracy": 95.0,
                "accuracy_sd": sd,
            }
            for line in lines
        ]
    )


class TestStatistics:
    @pytest.mark.parametrize("spectrum", [False, True])
    def test_placements_are_the_auroc(self, spectrum):
        table = frame(0)
        known = table[table["role"].isin(["id_test", "csid"] if spectrum else ["id_test"])]["msp"]
        for name, each in placements(table, "msp", spectrum).items():
            outliers = table[table["set"] == name]["msp"]
            truth = np.r_[np.zeros(len(known)), np.ones(len(outliers))]
            expected = roc_auc_score(truth, np.r_[known, outliers])
            assert each.ood.mean() == pytest.approx(expected) and each.known.mean() == pytest.approx(expected)
            assert len(each.known) == 400, "an image and its copy are one"

    def test_classes_are_those_of_the_outliers(self):
        found = placements(frame(0), "msp")["tin"]
        assert len(set(found.classes)) == CLASSES, "not the label, which outliers do not have"

    @pytest.mark.slow
    def test_redrawn_classes_are_covered(self):
        """Two methods that differ by class, not on average: for images they differ, for classes in 5 % of all draws."""
        rng, of_images, of_classes = np.random.default_rng(0), 0, 0
        known = rng.normal(size=300)
        for _ in range(200):
            labels = np.repeat(np.arange(25), 12)
            base = rng.normal(1, 1, len(labels))
            tables = []
            for _ in range(2):
                score = base + rng.normal(0, 0.4, 25)[labels]
                near = pd.DataFrame({"role": "near", "set": "s", "own_class": labels, "msp": score})
                tables.append(pd.concat([pd.DataFrame({"role": "id_test", "msp": known}), near]).assign(kept="best"))
            images, classes = contrast(*(placements(each, "msp") for each in tables))
            of_images += images.verdict(1) != "cannot say"
            of_classes += classes.verdict(1) != "cannot say"
        assert of_classes <= 0.09 * 200 < 0.2 * 200 <= of_images, (of_images, of_classes)

    def test_few_classes_say_nothing_of_others(self):
        table = frame(0, near=3.0)
        few = table.assign(own_class=table["own_class"] % 3)
        _, classes = contrast(
            placements(few, "msp"), placements(frame(1, near=0.1).assign(own_class=few["own_class"]), "msp")
        )
        assert classes.verdict(1) == "cannot say"

    def test_verdicts(self):
        assert Estimate(2.0, 0.5, 20).verdict(1) == "holds" and Estimate(2.0, 0.5, 20).verdict(-1) == "does not hold"
        assert Estimate(2.0, 1.5, 20).verdict(1) == "cannot say" == Estimate(2.0, float("nan"), 20).verdict(1)

    def test_seeds_are_pooled_and_added(self):
        values = pd.DataFrame({"method": ["a", "a", "a", "b", "b", "c"], "near": [1.0, 2, 3, 5, 7, 9]})
        assert pooled(values, "near") == (pytest.approx((2 * 1 + 2) / 3), 3)
        assert satterthwaite([(1.0, 10), (1.0, 10)]) == pytest.approx(20)
        found = over_seeds(1.0, Estimate(1.0, 0.3, 50), (0.04, 20), 2 / 3)
        assert found.error == pytest.approx(np.sqrt(0.09 + 0.04 * 2 / 3)) and 20 < found.freedom < 80

    def test_networks_are_averaged_image_by_image(self):
        one, two = (placements(frame(seed), "msp") for seed in (1, 2))
        both = mean_placements([one, two])
        np.testing.assert_allclose(both["tin"].ood, (one["tin"].ood + two["tin"].ood) / 2)


class TestPage:
    def test_findings(self, world):
        folder, table = world
        text = "\n".join(pages.finding_section(pages.ours(table, "cifar10"), "cifar10", folder))
        found = {
            line.split(" | ")[1].split()[0]: line.split(" | ")[3:] for line in text.splitlines() if " CE | " in line
        }
        assert [each.strip(" |") for each in found["LogitNorm"]] == [HOLDS] * 3
        assert [each.strip(" |") for each in found["Cutout"]] == ["does not hold"] * 3
        assert found["T2FNorm"][-1].strip(" |") == "cannot say"
        assert found["PixMix"][-1].strip(" |") == "cannot say: one seed" and found["PixMix"][0] == HOLDS
        assert "1 hold (LogitNorm above CE); 1 do not hold (Cutout above CE)" in text
        assert "5 are not yet run (RotPred above CE" in text

    def test_without_scores_only_seeds_are_spoken_of(self, world):
        _, table = world
        lines = pages.finding_section(pages.ours(table, "cifar10"), "cifar10", None)
        assert any(
            "LogitNorm above CE" in line and "no scores given | no scores given | holds" in line for line in lines
        )

    def test_full_spectrum(self, world):
        folder, table = world
        lines = pages.spectrum_section(table, "cifar10", folder)
        rows = {
            line.split(" | ")[0].strip("| "): line.strip(" |").split(" | ") for line in lines if line.startswith("| ")
        }
        assert rows["CE"][6:] == [HOLDS] * 3, "lower with corrupted images"
        assert rows["AugMix"][-1] == "cannot say", "copies as easy as the images"
        assert rows["AugMix above CE"][2:] == [HOLDS] * 3
        assert rows["PixMix above CE"][-1] == "cannot say: one seed" and rows["RegMixup above CE"][1] == "not yet run"
        assert float(rows["CE"][4]) > float(rows["CE"][5]), "accuracy falls as well"

    def test_full_spectrum_of_tables_without_copies(self, world, tmp_path):
        frame(0, csid=False).to_parquet(tmp_path / "CE-0.parquet")
        assert pages.spectrum_section(table_of(tmp_path), "cifar10", tmp_path)[0].startswith("Not yet run")
        mixed = pd.concat([world[1][world[1]["method"] != "CE"], table_of(tmp_path)])
        assert any(
            "Not yet scored with corrupted images: CE 0." in line
            for line in pages.spectrum_section(mixed, "cifar10", None)
        )

    @pytest.mark.parametrize(
        ("other", "noise", "word"),
        [(0.0, 0.1, "equal within seeds"), (3.0, 0.1, "differs"), (0.0, 3.0, "cannot say")],
    )
    def test_precisions(self, other, noise, word):
        rng = np.random.default_rng(0)
        networks = pd.DataFrame(
            [
                {"method": name, "seed": seed, "near": 88 + shift + noise * each, "accuracy": 95 + noise * each}
                for name, shift in (("CE", 0.0), ("CE-tf32", other))
                for seed, each in enumerate(rng.permutation([-1.0, 0.0, 1.0]))
            ]
        )
        assert f": {word}" in pages.precisions(networks).split(";")[0]
        assert "not yet made" in pages.precisions(networks[networks["seed"] < 2])

    def test_equivalence_and_the_bar(self):
        compared = [name for name, line in lines_of("cifar10").items() if line.compared]
        networks = pd.DataFrame(
            [
                {"method": name, "seed": seed, "near": 88.1 + 0.1 * seed + 3 * (name == "CE"), "accuracy": 95.0}
                for name in compared
                for seed in range(3)
            ]
        )
        text = "\n".join(pages.compared_section(networks, rows(), "cifar10"))
        assert (
            "- near: 9 of 10 methods are equivalent within 1.0 point; the bar of four fifths is reached; differ: CE."
            in text
        )
        assert "- accuracy: 10 of 10" in text and "| CE | near | 91.20 | 0.10 | 88.00 | 3.20 | differs |" in text
        low = networks.assign(near=networks["near"] + 2 * networks["method"].isin(compared[:3]))
        assert "7 of 10 methods are equivalent within 1.0 point; the bar of four fifths is not reached" in "\n".join(
            pages.compared_section(low, rows(), "cifar10")
        )
        assert "1 of 10 methods are not yet run with three seeds: bar open" in "\n".join(
            pages.compared_section(networks[networks["method"] != "ARPL"], rows(), "cifar10")
        )

    def test_every_row_that_is_not_run_is_named(self, world):
        folder, table = world
        text = pages.page(table, rows(), "cifar10", folder, "today")
        last = text.splitlines()[-1]
        assert (
            last.startswith("- Not yet run: RandAugment 0, RandAugment 1, ")
            and "MixOE 0" in last
            and "CE 0" not in last
        )
        assert "| OE | 0 | not yet run |" in text and "| PixMix | 1 |" in text
        large = pages.page(table.head(0), rows(), "cifar100", None, "today")
        assert "Not yet run: CE 0, CE 1, CE 2, LogitNorm 0" in large and "learnt from outliers" not in large
        assert "--earlier docs/results/data/training-cifar10.parquet" in text and "**Date.** today" in text
        assert "parquet" not in large and "nothing is measured yet" in large and "scored before" not in large

    def test_an_earlier_table_adds_networks(self, world, tmp_path):
        _, table = world
        table[table["method"] == "CE"].to_csv(tmp_path / "new.csv", index=False)
        table.assign(auroc=0.0).to_parquet(tmp_path / "old.parquet")
        both = pages.read_tables(tmp_path / "new.csv", tmp_path / "old.parquet")
        assert (both[both["method"] == "CE"]["auroc"] > 0).all() and set(both["method"]) == set(table["method"])
        assert (both[both["method"] == "Cutout"]["auroc"] == 0).all()

    def test_a_correct_loss_stands_beside_the_released_one(self, tmp_path):
        made = {"MOS": [1.6, 1.6, 1.6], "MOS-released": [1.0, 1.0, 1.0], "NPOS": [1.2]}
        for place, (method, centres) in enumerate(made.items()):
            score = lines_of("cifar10")[method].score
            for seed, centre in enumerate(centres):
                frame(100 + 10 * place + seed, centre, score=score).to_parquet(tmp_path / f"{method}-{seed}.parquet")
        lines = pages.released_section(table_of(tmp_path), "cifar10", tmp_path)
        found = {line.split(" | ")[0]: line.split(" | ") for line in lines if line.startswith("| ")}
        assert found["| MOS"][1] == "3, 3" and found["| MOS"][5:] == ["holds", "holds", "holds |"]
        assert float(found["| MOS"][4]) > 5
        assert (
            found["| NPOS"][1:4] == ["1, 0", found["| NPOS"][2], "not yet run"] and found["| CSI"][2] == "not yet run"
        )

    def test_methods_with_few_detectors_are_named(self, world):
        more = [world[1].assign(detector=name) for name in ("knn", "ebo")]
        table = pd.concat([world[1], *(each[each["method"] != "Cutout"] for each in more)])
        assert pages.scored_lines(table) == ["- Of Cutout there are scores of msp only."]

    def test_given_starts_are_named(self, world):
        table = world[1].assign(start=np.where(world[1]["method"] == "Cutout", "net_s0", ""))
        (line,) = pages.start_lines(table)
        assert line.startswith("- Cutout 0, Cutout 1, Cutout 2 went on from `net_s0`")
        assert not pages.start_lines(world[1])
