"""The study of architectures and regimes, whole in miniature, and what its page says of made-up rows."""

import sys
from math import isnan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import oodscope as oods
from oodscope.data.imageset import ImageSet
from tests.training.training_toys import PREPROCESS, colours

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import regimes_page
import regimes_study
from regimes_page import compared, components, matched, page, pooled, read_rows, verdict
from regimes_study import DETECTORS, PLAIN, REGIMES, ROWS


def tiny(folder, known):
    def dark(seed, name):
        return ImageSet.from_arrays(name, 255 - np.stack(colours(30, seed=seed).images(range(30))))

    return oods.Benchmark(
        known, "1", transform=PREPROCESS, id_train=colours(90, name="id_train"),
        id_val=colours(60, seed=1, name="id_val"), id_test=colours(60, seed=2, name="id_test"),
        near=(dark(3, "near"),), far=(dark(4, "far"),), csid=(colours(60, seed=5, name="corrupted"),),
    )  # fmt: skip


@pytest.mark.slow
def test_rows_are_trained_measured_and_not_made_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(regimes_study, "DETECTORS", ("msp", "knn"))
    fast = ["--epochs", "1", "--network", "small_cnn", "--precision", "32-true", "--device", "cpu"]
    fast += ["--output", str(tmp_path), "--names", "plain,distilled,l2-0.125,style", "--seeds", "0"]
    real = regimes_study.Study.make

    def make(self, row, seeds):
        if row.name == "l2-0.125":
            raise RuntimeError("no such attack")
        return real(self, row, seeds)

    with monkeypatch.context() as patched:
        patched.setattr(regimes_study.Study, "make", make)
        patched.setitem(ROWS, PLAIN, regimes_study.Row(PLAIN))
        assert regimes_study.main(fast, sets=tiny) == ["l2-0.125 0"]
        printed = capsys.readouterr()
        assert "l2-0.125 [0]: failed" in printed.out and "no such attack" in printed.err
    monkeypatch.setitem(ROWS, PLAIN, regimes_study.Row(PLAIN))
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").iterdir()}
    assert regimes_study.main(fast, sets=tiny) == []
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in times.items()) and len(times) == 3
    rows = read_rows(tmp_path / "rows")
    assert set(rows["name"]) == {"plain", "distilled", "l2-0.125", "style"}
    assert {"der95_val_correct", "der99_train_correct", "accuracy"} <= set(rows["metric"])
    robust = rows[rows["metric"] == "robust_accuracy"]
    plain = rows[(rows["metric"] == "accuracy") & (rows["set"] == "id_test")].set_index("name")["value"]
    assert list(robust["name"]) == ["l2-0.125"] and 0 <= robust["value"].item() <= plain["l2-0.125"] + 1e-9
    made = page(rows, "2026-01-01")
    assert "under attack at the own radius (20 steps), percent: l2-0.125" in made
    assert "| plain | 1 |" in made and "vgg16_32 | 0 | not yet run" in made and "**Answer.** of the study" in made


def tiny_32(folder, known):
    """Sets of the size that the study's networks take."""
    rng = np.random.default_rng(0)

    def coloured(name, count, labelled=True):
        pixels, labels = rng.integers(0, 160, (count, 32, 32, 3)), np.arange(count) % 3
        pixels[np.arange(count), :, :, labels] += 90
        return ImageSet.from_arrays(name, pixels.astype(np.uint8), *([labels, list("abc")] if labelled else []))

    return oods.Benchmark(
        known, "1", transform=oods.Preprocess(size=32), id_train=coloured("id_train", 24),
        id_val=coloured("id_val", 12), id_test=coloured("id_test", 12), near=(coloured("near", 6, False),),
        far=(coloured("far", 6, False),), csid=(coloured("corrupted", 12),),
    )  # fmt: skip


@pytest.mark.soak
def test_every_row_from_start_to_page(tmp_path):
    """All rows and seeds with a small network, and the six architectures as they are."""
    fast = ["--epochs", "1", "--precision", "32-true", "--device", "cpu"]
    regimes, kinds = tmp_path / "regimes", tmp_path / "architectures"
    stopped = regimes_study.main([*fast, "--network", "small_cnn", "--output", str(regimes), "--minutes", "0"], tiny_32)
    assert stopped == [f"{row.name} {seed}" for row in ROWS.values() for seed in row.seeds], "nothing is begun too late"
    assert regimes_study.main([*fast, "--network", "small_cnn", "--output", str(regimes)], tiny_32) == []
    assert len(list((regimes / "runs").glob("*/run.json"))) == len(stopped) == 41
    names = ",".join(regimes_study.ARCHITECTURES)
    assert regimes_study.main([*fast, "--output", str(kinds), "--names", names, "--seeds", "0"], tiny_32) == []
    for folder in (regimes, kinds):
        regimes_page.main([str(folder / "rows"), str(tmp_path / "page.md"), "--measured", "2026-01-01"])
        made = (tmp_path / "page.md").read_text(encoding="utf-8")
        assert made.count("| 0 | not yet run") == (0 if folder == regimes else 8 + 8 + 1)
    made = page(read_rows(regimes / "rows"), "2026-01-01")
    assert "Not yet run: nothing." in made and "architectures (6)" in made and "regimes (9)" in made
    again = oods.open_runs(regimes / "runs")
    assert len(again) == 41 and all("knn" in run.scores.detectors for run in again)


def test_all_rows_can_be_made():
    for row in ROWS.values():
        recipe = oods.create_recipe(row.recipe, **row.settings)
        assert recipe.ood_batch_size == 0 and (row.after is None or row.after in ROWS)
    assert len(REGIMES) == 8 and all(ROWS[name].seeds == (0, 1, 2) for name in (PLAIN, *REGIMES))
    assert len(regimes_study.ARCHITECTURES) == 6
    assert list(ROWS)[:2] == [PLAIN, "distilled"], "the first ten minutes answer Figure 7"
    assert {PLAIN, *REGIMES, *regimes_study.ARCHITECTURES, *(f"l2-{r:g}" for r in regimes_study.RADII)} == set(ROWS)


def made_rows(effects, seeds=3, noise=0.2, far=40.0):
    """Rows of made-up networks: a regime's effect in points on the FAR of an OOD set, the same for all detectors."""
    rng = np.random.default_rng(0)
    found = []
    for name, effect in effects.items():
        for seed in range(seeds):
            network = {"name": name, "seed": seed, "network": "n", "low": np.nan, "high": np.nan}
            known = {**network, "detector": "", "metric": "accuracy", "group": "", "value": 0.8}
            found += [{**known, "set": set_} for set_ in ("id_test", "corrupted")]
            for place, detector in enumerate(DETECTORS):
                own = {**network, "detector": detector, "group": "", "rejected_correct": 0.05}
                for keep in (95, 99):
                    for source in ("val_correct", "train_correct"):
                        value = far + effect + place + rng.normal() * noise
                        found.append({**own, "metric": f"far{keep}_{source}", "set": "svhn", "value": value / 100})
                        for set_ in ("id_test", "corrupted"):
                            found.append({**own, "metric": f"far{keep}_{source}", "set": set_, "value": 0.5})
                            found.append({**own, "metric": f"frr{keep}_{source}", "set": set_, "value": 0.05})
    return pd.DataFrame(found)


class TestPage:
    def test_accuracy_is_matched_to_the_plain_network(self):
        rows = made_rows({PLAIN: 0.0, "augmix": 0.0}, noise=0.0)
        better = (rows["name"] == "augmix") & (rows["metric"] == "accuracy")
        rows.loc[better, "value"] = 0.9  # a better network alone must not change anything
        values = matched(rows, 95, "val_correct")
        expected = (40 + 2 * (0.8 * 5 + 0.2 * 50)) / 3
        assert values.xs("msp", level="detector").tolist() == pytest.approx([expected] * 6)

    def test_differences_beyond_the_noise_of_seeds(self):
        rows = made_rows({PLAIN: 0.0, "augmix": 6.0, "ant": 0.05})
        values = matched(rows, 95, "val_correct").xs("msp", level="detector")
        noise = pooled(values)
        assert verdict(*compared(values, "augmix", PLAIN, noise), 1) == "holds"
        assert verdict(*compared(values, "augmix", PLAIN, noise), -1) == "does not hold"
        assert verdict(*compared(values, "ant", PLAIN, noise), 1) == "cannot say here"
        assert verdict(*compared(values, "style", PLAIN, noise), 1) == "not yet run"
        single = values[values.index.get_level_values("seed") == 0]
        assert verdict(*compared(single, "augmix", PLAIN, pooled(single)), 1) == "cannot say here"

    def test_components_are_those_of_the_world(self):
        names = [f"k{number}" for number in range(40)]
        effects = dict(zip(names, np.random.default_rng(1).normal(scale=3, size=40)))
        rows = made_rows({PLAIN: 0.0, **effects}, noise=1.5)
        values = matched(rows, 95, "val_correct")
        found = components(values, names)
        # a third of the sets carries the effect
        assert found["kind"] == pytest.approx(1.0, rel=0.3) and found["seed"] == pytest.approx(0.5, rel=0.1)
        assert found["detector"] == pytest.approx(np.std(np.arange(9), ddof=1) / 3, rel=0.05)
        assert found["kind × detector"] < 0.15, "there is none: three standard errors"
        assert components(values, ["k0"]) == {}

    def test_without_rows_everything_is_named(self):
        made = page(read_rows(Path("nowhere")), "2026-01-01")
        assert "no network of this study is trained yet" in made and "plain 0, plain 1, plain 2" in made
        assert "**Date.** nothing is measured yet" in made
        assert made.count("not yet run") > 20

    def test_claims_of_a_made_up_world(self):
        rows = made_rows({PLAIN: 0.0, "l2-0.75": 20.0, "l2-0.125": 0.1, "distilled": -5.0, "ant": 0.0})
        words = {claim: word for claim, word, _ in regimes_page.claims(rows)}
        assert words["A large radius ruins detection: MSP's DER99 rises"] == "holds"
        assert words["A small radius changes little: MSP's DER95 by less than 2 points"] == "holds"
        assert words["knn is better on the distilled network"] == "holds"
        assert words["gradnorm before vim with ant"] == "holds", "its place in the list is before"
        assert words["vim before gradnorm with autoaugment"] == "not yet run"
        assert isnan(pooled(matched(rows, 95, "val_correct").iloc[:0])[0])
