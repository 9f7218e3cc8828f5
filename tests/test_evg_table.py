"""The table of evaluation via generation: what its numbers may claim, and that the study goes on where it stopped."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import evg_table
import oodscope as oods
from evg_claims import (
    HOLDS,
    NOT,
    OPEN,
    Claim,
    Estimate,
    at_least,
    at_most,
    best_worst,
    cell_of,
    claims,
    estimate,
    places,
    read_cells,
    spearman_orders,
)
from evg_forms import FORMS
from evg_rows import KINDS, ROWS, SETS, STRONG
from evg_table_page import page, record_minutes, write_page
from oodscope.generation.gan.recipe import GanRecipe

FACTS = {
    "chains": 60, "budget": 50, "search_minutes": 1, "training_minutes": {}, "machine": "none", "date": "2026-01-01",
    "plain": "", "learnt_outliers": 0, "form": "whole", "words": "",
}  # fmt: skip


def unit(rng, clean, drop):
    """Scores of ID images, of outliers, and of what a search made of them."""
    lowered = clean - drop + 0.05 * rng.normal(size=len(clean))
    return {"id_test": np.linspace(-2.5, 2.5, 400), "clean": clean, "found": lowered}


def cells(drops, seeds=3):
    """Every strong row with drops by variation, from the same images in every search."""
    rng = np.random.default_rng(0)
    made = {}
    for place, row in enumerate(STRONG):
        for name in SETS:
            clean = rng.normal(1 + 0.2 * place, 1, 60)
            made[row, name, "clean"] = cell_of([{"id_test": np.linspace(-2.5, 2.5, 400), "found": clean}])
            for kind in KINDS:
                made[row, name, kind] = cell_of([unit(rng, clean, drops[kind]) for _ in range(seeds)])
    return made


def test_a_place_is_the_share_of_id_images_below_and_their_mean_the_auroc():
    assert places(np.array([0.0, 1.0, 2.0, 2.0]), np.array([-1.0, 1.0, 2.0, 3.0])).tolist() == [0, 0.375, 0.75, 1]


def test_an_interval_counts_images_and_seeds():
    rng = np.random.default_rng(0)
    images = rng.normal(0.5, 0.1, 200)
    alone, with_seeds = estimate(images, np.zeros(1)), estimate(images, np.array([0.4, 0.5, 0.6]))
    half = 1.972 * images.std(ddof=1) / np.sqrt(200)
    assert alone.high - alone.value == pytest.approx(half, rel=1e-3)
    assert with_seeds.high - with_seeds.value > 4 * half, "three seeds that differ by .1 say little"
    same = estimate(np.full(9, 0.25), np.zeros(1))
    assert (same.low, same.value, same.high) == (0.25, 0.25, 0.25)


def test_an_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        seeds = rng.normal(0, 0.05, 3)
        by_seed = rng.normal(0.5, 0.2, 60) + seeds[:, None] + 0.01 * rng.normal(size=(3, 60))
        found = estimate(by_seed.mean(axis=0), by_seed.mean(axis=1))
        hits += found.low <= 0.5 <= found.high
    assert hits / 400 >= 0.93


@pytest.mark.parametrize(
    ("found", "below", "above"),
    [((0.01, 0.05), HOLDS, NOT), ((0.2, 0.3), NOT, HOLDS), ((0.05, 0.2), OPEN, OPEN), (None, OPEN, OPEN)],
)
def test_an_interval_across_the_bar_cannot_say(found, below, above):
    value = None if found is None else Estimate(sum(found) / 2, *found)
    assert at_most("x", value, 0.1)[1] == below and at_least("x", value, 0.1)[1] == above


def test_a_point_holds_only_if_all_its_parts_do():
    assert Claim("", (("", HOLDS), ("", OPEN))).verdict == OPEN
    assert Claim("", (("", HOLDS), ("", OPEN), ("", NOT))).verdict == NOT
    assert Claim("", (("", HOLDS),)).verdict == HOLDS and Claim("", ()).verdict == OPEN


@pytest.mark.slow
def test_drops_are_paired_by_image_and_points_follow():
    drops = {"linf": 0.02, "affine": 1.5, "color": 0.4, "gan": 3.0, "linf black-box": 0.01}
    made = cells(drops)
    drop = made["atom", "svhn", "linf"].drop
    assert drop.low < drop.value < drop.high and drop.high - drop.low < 0.05, "images vary much more than their drops"
    verdicts = [claim.verdict for claim in claims(made)]
    assert verdicts[2] == NOT, "nobody loses a quarter in the ball"
    assert verdicts[3] == HOLDS, "all four lose much under affine changes"
    assert verdicts[5] == HOLDS and best_worst(made, "svhn").value < 0.5
    assert verdicts[0] == OPEN, "likelihoods were not run"


@pytest.mark.slow
def test_orders_have_intervals_and_need_four_rows():
    made = cells(dict.fromkeys(KINDS, 0.1))
    orders = spearman_orders(made, "svhn")
    assert orders["color"].value > 0.8 and orders["color"].low < orders["color"].value
    few = {key: cell for key, cell in made.items() if key[0] in STRONG[:3]}
    assert spearman_orders(few, "svhn") == {}


def test_a_page_names_what_was_not_run(tmp_path):
    empty = page({}, {"good clean": "recipe good is not installed"}, FACTS)
    assert "**Answer.** Of the six points" in empty and "on 6 these runs cannot say; 0 of 14 rows" in empty
    assert "- glow: everything" in empty and "- good, clean: recipe good is not installed" in empty
    (tmp_path / "units").mkdir()
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "units" / "nae-svhn-linf-0.npz",
        seconds=1.0,
        chains=60,
        budget=50,
        **unit(rng, rng.normal(2, 1, 60), 0.1),
    )
    assert set(read_cells(tmp_path)) == {("nae", "svhn", "linf")}
    write_page(tmp_path, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "- nae: svhn clean, svhn affine" in text and "(0.900)" in text


def test_minutes_of_default_settings_are_recorded(tmp_path):
    for name in ("glow", "plain"):
        (tmp_path / "networks" / name).mkdir(parents=True)
        history = {"history": [{"seconds": 30.0}, {"seconds": 33.0}]}
        (tmp_path / "networks" / name / "training.json").write_text(json.dumps(history))
    (tmp_path / "minutes.json").write_text('{"about": "", "minutes": {"vos": 2.0}}')
    with pytest.raises(SystemExit, match="only the whole study on a GPU"):
        record_minutes(tmp_path, tmp_path / "minutes.json")
    (tmp_path / "study.json").write_text('{"machine": "NVIDIA H200", "words": ""}')
    record_minutes(tmp_path, tmp_path / "minutes.json")
    found = json.loads((tmp_path / "minutes.json").read_text())["minutes"]
    assert found == {"glow": 1.05, "vos": 2.0}, "plain was trained with other epochs than the recipe's own"


def test_cheap_rows_are_whole_before_dear_ones_and_all_before_further_seeds():
    rows = [row for row in ROWS if row.published]
    trained = [row.minutes for row in rows if row.stages]
    assert len(rows) == 14 and trained == sorted(trained)
    order = list(evg_table.units(ROWS[1:], 2))
    first = [each for each in order if each[3] == 0]
    assert [each[0].name for each in first] == [row.name for row in ROWS[1:] for each in first if each[0] is row]
    assert {kind for row, _, kind, _ in first if row.name == "good"} == {"clean", "proven", *KINDS}
    seeds = [seed for _, _, _, seed in order]
    assert seeds == sorted(seeds) and len(order) == len({(row.name, *rest) for row, *rest in order})


@pytest.mark.slow
def test_what_is_proven_and_what_was_released_stand_beside_the_table():
    made = cells(dict.fromkeys(KINDS, 0.5))
    rng = np.random.default_rng(1)
    made["good", "svhn", "proven"] = cell_of([{"id_test": np.linspace(-2.5, 2.5, 400), "found": rng.normal(0, 1, 60)}])
    made["rowl_released", "svhn", "linf"] = made["rowl", "svhn", "linf"]
    text = page(made, {}, FACTS)
    assert "- good on svhn: no attack within .01 brings its AUROC below 0." in text
    assert "- good on scenes: its proven AUROC is not run." in text
    assert "paired by source image: 0.000" in text


@pytest.mark.parametrize("name", FORMS)
def test_every_form_names_what_exists(name):
    form = FORMS[name]
    assert {*form.rows, *form.settings} <= {row.name for row in ROWS} and set(form.kinds) <= set(KINDS)
    for row in ROWS:
        for recipe, settings in row.stages:
            oods.create_recipe(recipe, **{**settings, **form.common, **form.settings.get(row.name, {})})
    GanRecipe(**form.generator)


def test_another_form_has_a_page_of_its_own():
    text = page({}, {}, {**FACTS, "form": "cpu", "words": "small networks"})
    assert "--form cpu" in text and "evg-table-cpu.md" in text and "**Form.** small networks." in text
    assert "GPU minutes" not in text, "they are the whole study's"


def test_a_page_speaks_of_what_was_run():
    cell = cell_of([{"id_test": np.linspace(-2.5, 2.5, 400), "found": np.linspace(0, 1, 60)}])
    numbers = {"id_test": 3000, "learnt_svhn": 1500, "learnt_scenes": 1200, "learnt_outliers": 35_000}
    alone = page({("autoencoder", "svhn", "clean"): cell}, {}, FACTS | numbers)
    assert "3,000 of OpenOOD's 9,000" in alone
    for words in ("ResNet-18 where", "Outliers to learn", "APGD", "Generators learn", "md was fitted", "a tenth with"):
        assert words not in alone and (words in page({}, {}, FACTS) or words == "a tenth with")
    more = {("oe", "svhn", "gan"): cell, ("md", "svhn", "linf"): cell}
    both = page(more, {}, FACTS | numbers | {"network": "small_cnn"})
    assert "35,000 images of CIFAR-100" in both and "1,500 digits, 1,200 scenes" in both and "md was fitted" in both
    assert "- small_cnn where the paper has" in both and "a tenth with gradients" in both


def test_what_is_said_of_a_form_is_made_from_its_settings():
    said = FORMS["cpu"].describe(20_000)
    assert "20,000 training images, small_cnn in the place of ResNet-18 (epochs 8)" in said
    assert all(f"; {name} " in said for name in {*FORMS["cpu"].rows} - {"md"}) and FORMS["whole"].describe(1) == ""


@pytest.mark.soak
@pytest.mark.realdata
@pytest.mark.skipif("OODSCOPE_DATA" not in os.environ, reason="needs the packs")
def test_the_study_in_miniature_stops_and_goes_on(tmp_path, monkeypatch, capsys):
    common = ["evg_table.py", "--output", str(tmp_path), "--form", "small", "--seeds", "1", "--device", "cpu",
              "--write", str(tmp_path / "page.md")]  # fmt: skip
    monkeypatch.setattr(sys, "argv", [*common, "--minutes", "0"])
    evg_table.main()
    assert "not done: the same command goes on" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", common)
    evg_table.main()
    out = capsys.readouterr().out
    left = [line for line in out.splitlines() if line.startswith("left out")]
    assert left == ["left out: csi linf: OodscopeError: the score has no gradient, so there is no white-box attack"]
    found = read_cells(tmp_path)
    cells = 15 * 2 * (1 + len(KINDS)) + 2 - 2
    assert len(found) == cells, "every row of the table, ROWL as released, what is proven; CSI without white box"
    assert all(cell.by_seed.shape == (1, 4) for (_, _, kind), cell in found.items() if kind in KINDS)
    for name in SETS:
        assert found["good", name, "proven"].images.mean() <= found["good", name, "clean"].images.mean() + 1e-9
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "13 of 14 rows are complete" in text and "- csi, linf: OodscopeError: the score has no gradient" in text
    assert "- csi: svhn linf, scenes linf" in text, "nothing else is missing"
    assert all(cell.drop.value >= -1e-6 for (_, _, kind), cell in found.items() if kind in ("affine", "color"))
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "units").iterdir()}
    evg_table.main()
    assert files == {path: path.stat().st_mtime_ns for path in (tmp_path / "units").iterdir()}, "nothing is done again"
