"""The script that trains and scores the networks of the tables, whole, in miniature: order, time, resume, weights."""

import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

import oodscope as oods
import oodscope.training.loop.lockstep as lockstep
from oodscope.data.imageset import ImageSet
from tests.training.training_toys import PREPROCESS, colours, grouped, negatives

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import board_rows
import openood_findings
import training_page
import training_table
from training_rows import LINES, THREE, lines_of
from training_sets import corrupted, exposed_sets
from weight_pieces import read_pieces, write_pieces

FAST = ["--id", "cifar10", "--epochs", "1", "--network", "small_cnn", "--precision", "32-true", "--device", "cpu"]
FAST += ["--detectors", "msp,knn"]


LATER = "G-ODIN VOS CIDER NPOS MOS MOS-released PALM ReweightOOD ISH ASCOOD CSI-first CSI MCD MCD-released UDG"
LATER = {*LATER.split(), "NPOS-released", "CSI-first-released", "CSI-released"}


def tiny(folder, known, images, device):
    """A benchmark of three colours; ``tin`` has classes to learn from."""
    dark = negatives(40)
    tin = ImageSet.from_arrays("tin", np.stack(dark.images(range(40))), np.arange(40) % 8, list("abcdefgh"))
    return oods.Benchmark(
        known,
        "1",
        transform=PREPROCESS,
        id_train=grouped(140, name="id_train"),
        id_val=colours(24, seed=1, name="id_val"),
        id_test=colours(32, seed=2, name="id_test"),
        near=(colours(24, seed=3, name="cifar100"), tin),
        ood_val=ImageSet.from_arrays(
            "tin_val", 255 - np.stack(colours(16, seed=7).images(range(16))), np.arange(16) % 8
        ),
        csid=(colours(32, seed=4, name="corrupted"),),
    )


def run(folder, *options):
    return training_table.main(["--output", str(folder), *FAST, *options], sets=tiny)


class TestLines:
    def test_the_order(self):
        methods = [line.method for line in LINES if line.known == "cifar10" and line.compared]
        expected = "CE LogitNorm T2FNorm Cutout RandAugment ConfBranch ARPL RegMixup AugMix RotPred"
        assert methods == expected.split()
        others = {"CE-tf32", "PixMix", "Mixup", "CutMix", "AugMix-JSD", "OE", "MixOE"}
        assert set(lines_of("cifar10")) == {*methods, *others, *LATER}
        large = {name: len(line.seeds) for name, line in lines_of("cifar100").items()}
        assert large == {"CE": 3, "LogitNorm": 1, "T2FNorm": 1, "RotPred": 1, "Cutout": 1, "RegMixup": 1}
        known = [line.known for line in LINES]
        assert known == sorted(known), "CIFAR-10 before CIFAR-100"

    def test_every_recipe_can_be_made(self):
        for line in LINES:
            recipe = oods.create_recipe(line.recipe, **line.settings)
            assert recipe.cost and bool(recipe.ood_batch_size) == line.exposed
            assert set(line.seeds) <= set(THREE)

    def test_an_unknown_method_is_one_line(self, tmp_path):
        with pytest.raises(SystemExit, match="unknown method 'Cutot'; known: CE, "):
            run(tmp_path, "--methods", "CE,Cutot")


@pytest.mark.slow
def test_trains_scores_stops_and_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lockstep, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "SAVING_SHARE", float("inf"))
    methods = ["--methods", "CE,ConfBranch,MixOE", "--seeds", "1"]
    assert run(tmp_path / "whole", *methods) == []
    ticks = iter(range(10**6))
    with monkeypatch.context() as patched:
        # the minutes are over before the epoch is
        patched.setattr(training_table, "_clock", lambda: 0.0 if next(ticks) < 5 else 1e9)
        missing = run(tmp_path / "parts", *methods, "--minutes", "1")
    assert missing == [f"cifar10 {name} 1" for name in ("CE", "ConfBranch", "MixOE")]
    under_way = {path.name for path in (tmp_path / "parts" / "trainings" / "cifar10" / "CE-1").iterdir()}
    assert under_way and "training.json" not in under_way, "a checkpoint, and nothing finished"
    assert "call again to go on" in capsys.readouterr().out
    assert run(tmp_path / "parts", *methods) == []
    for path in sorted((tmp_path / "whole" / "cifar10" / "scores").iterdir()):
        again = pd.read_parquet(tmp_path / "parts" / "cifar10" / "scores" / path.name)
        pd.testing.assert_frame_equal(pd.read_parquet(path), again)
    self_checks(tmp_path / "whole" / "cifar10", capsys.readouterr().out)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").rglob("*.parquet")}
    assert run(tmp_path / "parts", *methods) == [], "nothing is made again"
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").rglob("*.parquet")}


def self_checks(folder, printed):
    """The tables of a finished call."""
    table = pd.read_csv(folder / "table.csv")
    assert set(table["method"]) == {"CE", "ConfBranch", "MixOE"} and set(table["kept"]) == {"best", "last"}
    assert set(table["group"]) == {"near", "near-held", "csid", "fs-near"}
    own = table[(table["method"] == "ConfBranch") & (table["kept"] == "last")]
    assert set(own["detector"]) == {"msp", "conf_branch"}, "the last epoch stands beside, with its own score"
    exposed = table[table["method"] == "MixOE"]
    assert set(exposed[exposed["group"] == "near"]["set"]) == {"cifar100", "tin_held_100"}
    weights = read_pieces(folder / "weights", "CE-1")
    model = oods.create_model("small_cnn", num_classes=3)[0]
    model.load_state_dict(weights)
    assert not list((folder / "weights").glob("ConfBranch*"))
    seconds = pd.read_csv(folder / "seconds" / "CE-1.csv")
    assert {"msp", "knn", "passes"} <= set(seconds["detector"]) and (seconds["seconds"] >= 0).all()
    assert "s to score (slowest: " in printed


def shrunk(line):
    """A line that trains in a second, in all its phases."""
    small = {"queue": 20, "neighbours": 5, "boundary": 8, "noise": 12, "keep_of_noise": 4, "outlier_epoch": 0}
    small |= {"warmup_epochs": 0, "size": 8}
    fields = oods.create_recipe(line.recipe).model_dump()
    own = {name: value for name, value in small.items() if name in fields}
    batches = {"batch_size": 70} | ({"ood_batch_size": 20} if line.exposed else {})
    return replace(line, seeds=(0,), settings={**line.settings, **own, **batches})


@pytest.fixture
def miniature(monkeypatch):
    """All lines of CIFAR-10, small and with one seed, and checkpoints after every step."""
    lines = tuple(shrunk(line) for line in LINES if line.known == "cifar10")
    monkeypatch.setattr(training_table, "LINES", lines)
    monkeypatch.setattr(training_table, "lines_of", lambda known: {each.method: each for each in lines})
    monkeypatch.setattr(lockstep, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "SAVING_SHARE", float("inf"))
    return lines


@pytest.mark.slow
def test_every_line_trains_and_scores_and_no_stop_costs_anything(tmp_path, miniature, monkeypatch):
    """All lines, chains and outliers included: stopped again and again, with the scores of one call."""
    whole = ["--detectors", "msp,ebo"]  # the released form of VOS is plain networks with the energy
    assert run(tmp_path / "whole", *whole) == []
    folder = tmp_path / "whole" / "cifar10"
    table = pd.read_csv(folder / "table.csv")
    assert set(table["method"]) == {line.method for line in miniature}
    best = table[table["kept"] == "best"]
    for line in miniature:
        scores = set(best[best["method"] == line.method]["detector"])
        assert {line.score, *oods.create_recipe(line.recipe).detectors} <= scores | {"adascale_a"}
    assert set(table[table["method"] == "MCD"]["kept"]) == {"best"}, "the last epoch is the one that is kept"
    calls = stopped_again_and_again(tmp_path / "parts", whole, monkeypatch)
    assert calls > 10
    for path in sorted((folder / "scores").iterdir()):
        again = pd.read_parquet(tmp_path / "parts" / "cifar10" / "scores" / path.name)
        pd.testing.assert_frame_equal(pd.read_parquet(path), again)
    check_pages(folder, tmp_path, monkeypatch)


def stopped_again_and_again(folder, options, monkeypatch, ticks=40):
    """Call until all is done, each call with a few looks at the clock; how many calls it took."""
    for calls in range(1, 200):
        left = iter(range(10**6))
        with monkeypatch.context() as patched:
            patched.setattr(training_table, "_clock", lambda left=left: 0.0 if next(left) < ticks else 1e9)
            if run(folder, *options, "--minutes", "1") == []:
                return calls
    raise AssertionError("it does not come to an end")


def check_pages(folder, place, monkeypatch):
    """The pages and the board's rows that follow from the tables of a call."""
    data = place / "packs"
    data.mkdir()
    (data / "openood_boards").symlink_to(Path(str(files("oodscope.leaderboard.published") / "openood_boards")))
    monkeypatch.setenv("OODSCOPE_DATA", str(data))
    table = folder / "table.csv"
    training_page.main([str(table), str(place / "page.md"), "--scores", str(folder / "scores")])
    page = (place / "page.md").read_text()
    assert "| VOS | 1, 1 |" in page and "| MCD | 1, 1 |" in page and "| CSI | 1, 1 |" in page
    openood_findings.main([str(place / "findings.md"), f"cifar10={table}"])
    findings = (place / "findings.md").read_text()
    assert "OE above CE, near sets without the classes learnt" in findings
    assert "OE above CE, near sets without the classes learnt: not yet run" not in findings, "both have networks"
    monkeypatch.setattr(board_rows, "own_folder", lambda: place)
    pd.read_csv(table).to_parquet(place / "training-cifar10.parquet")
    board_rows.main([str(place / "training-cifar10.parquet")])
    rows = pd.read_csv(place / "cifar10.csv", keep_default_na=False)
    assert set(rows[rows["outliers"] != ""]["training"]) == {"OE", "MixOE", "MCD", "UDG"}
    assert {"G-ODIN", "CSI", "MOS", "VOS", "CIDER", "NPOS", "PALM", "ReweightOOD", "ISH"} <= set(rows["training"])


@pytest.mark.slow
def test_a_method_that_fails_does_not_stop_the_others(tmp_path, monkeypatch, capsys):
    """Scores that are not asked for stay out of the file; the order is that of the call."""
    real = training_table.Work.train

    def train(self, line, *rest):
        if line.method == "G-ODIN":
            raise ValueError("no such layer")
        return real(self, line, *rest)

    monkeypatch.setattr(training_table.Work, "train", train)
    missing = run(tmp_path, "--methods", "G-ODIN,ConfBranch,CE", "--seeds", "0", "--stored", "")
    assert missing == ["cifar10 G-ODIN 0"]
    printed = capsys.readouterr()
    assert "G-ODIN [0]: failed" in printed.out and "no such layer" in printed.err
    assert printed.out.index("ConfBranch 0:") < printed.out.index("CE 0:")
    stored = pd.read_parquet(tmp_path / "cifar10" / "scores" / "CE-0.parquet")
    table = pd.read_csv(tmp_path / "cifar10" / "table.csv")
    assert "knn" not in stored and "knn" in set(table["detector"]) and set(table["method"]) == {"CE", "ConfBranch"}


@pytest.mark.slow
def test_fine_tuning_starts_from_given_weights_and_its_rows_say_so(tmp_path):
    torch.manual_seed(3)
    weights = oods.create_model("small_cnn", num_classes=3)[0].state_dict()
    save_file({name: value.contiguous() for name, value in weights.items()}, tmp_path / "before.safetensors")
    given = ["--start", f"CE={tmp_path / 'before.safetensors'}"]
    assert run(tmp_path / "out", "--methods", "ISH,ConfBranch", "--seeds", "0", *given) == []
    assert not (tmp_path / "out" / "trainings" / "cifar10" / "CE-0").exists(), "cross-entropy is not trained"
    table = pd.read_csv(tmp_path / "out" / "cifar10" / "table.csv", keep_default_na=False)
    assert set(table[table["method"] == "ISH"]["start"]) == {"before"}
    assert set(table[table["method"] == "ConfBranch"]["start"]) == {""}
    for wrong in ("CE=nowhere.safetensors", "Cutout=" + given[1][3:]):
        with pytest.raises(SystemExit, match="give METHOD=FILE"):
            run(tmp_path / "out", "--start", wrong)


@pytest.mark.slow
def test_networks_of_an_earlier_table_count_as_done(tmp_path):
    earlier = tmp_path / "earlier.csv"
    pd.DataFrame({"method": ["CE"], "seed": [0], "auroc": [1.0]}).to_csv(earlier, index=False)
    assert run(tmp_path / "out", "--methods", "CE", "--seeds", "0", "--earlier", str(earlier)) == []
    assert not list((tmp_path / "out").rglob("*.parquet"))


class TestTime:
    def test_what_would_not_end_in_time_is_left_to_the_next_call(self, monkeypatch):
        now = [0.0]
        monkeypatch.setattr(training_table, "_clock", lambda: now[0])
        watch = training_table.Watch(minutes=10)
        assert not watch.too_late_for(1e9), "the first of a call is always begun"
        with watch.measuring(300):
            now[0] = 200.0
        assert not watch.too_late_for(600) and watch.too_late_for(601)
        with watch.stage("train", 3) as tick:
            tick(1)
            now[0] = 601.0
            with pytest.raises(training_table.TimeUpError):
                tick(1)

    def test_without_minutes_there_is_no_end(self):
        watch = training_table.Watch(float("inf"))
        with watch.measuring(1):
            pass
        assert not watch.too_late_for(1e12)


class TestSets:
    def test_outliers_are_classes_that_nobody_is_tested_on(self):
        found = exposed_sets(tiny(None, "cifar10", None, "cpu"))
        learnt = found.ood_train
        assert [each.name for each in found.near] == ["cifar100", "tin_held_100"]
        assert not set(learnt.labels) & set(found.near[1].labels) and not set(learnt.labels) & set(found.ood_val.labels)
        assert len(learnt) + len(found.near[1]) == 40

    def test_every_corruption_and_severity(self):
        pixels = np.random.default_rng(0).integers(0, 256, (90, 32, 32, 3), dtype=np.uint8)
        images = ImageSet.from_arrays("id", pixels, np.arange(90) % 3)
        made = corrupted(images, "cpu")
        assert len(made) == 90 and (made.labels == images.labels).all()
        changed = [not np.array_equal(one, other) for one, other in zip(pixels, made.images(range(90)))]
        assert np.mean(changed) > 0.95
        assert all(
            np.array_equal(a, b) for a, b in zip(made.images(range(90)), corrupted(images, "cpu").images(range(90)))
        )


class TestPieces:
    weights = {"a": torch.randn(100, 10), "b": torch.arange(5), "c": torch.randn(300)}

    def test_they_are_bounded_and_come_back(self, tmp_path):
        paths = write_pieces(self.weights, tmp_path, "net", limit=2700)
        assert len(paths) == 2 and all(path.stat().st_size <= 2700 for path in paths)
        again = read_pieces(tmp_path, "net")
        assert again.keys() == self.weights.keys() and again["b"].dtype == torch.int64
        torch.testing.assert_close(again["a"], self.weights["a"], rtol=1e-3, atol=1e-4)

    def test_a_missing_piece_is_noticed(self, tmp_path):
        write_pieces(self.weights, tmp_path, "net", limit=2700)[0].unlink()
        with pytest.raises(FileNotFoundError, match="1 pieces are there, and not all"):
            read_pieces(tmp_path, "net")

    def test_what_does_not_fit_is_refused(self, tmp_path):
        with pytest.raises(ValueError, match="does not fit into a file"):
            write_pieces(self.weights, tmp_path, "net", limit=1000)
        with pytest.raises(ValueError, match="too large for float16"):
            write_pieces({"a": torch.tensor([1e6])}, tmp_path, "net")
