"""OpenOOD's public boards come with the package: every row once, as it was reported, and the front page shows it."""

import random
import re
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oodscope.base.errors import DataError
from oodscope.document.number import Number
from oodscope.leaderboard.published import boards
from oodscope.leaderboard.published import own as own_module
from oodscope.leaderboard.published.boards import BOARDS, board_rows, board_standings, stated_in_paper
from oodscope.leaderboard.published.own import own_rows, own_standing, own_standings
from oodscope.leaderboard.published.table import published_standings, published_tables
from oodscope.leaderboard.records.board import Board
from oodscope.leaderboard.records.keeping import Receipt, write_receipt
from oodscope.leaderboard.records.records import DetectorUse
from oodscope.leaderboard.records.spread import spread_ranks
from oodscope.leaderboard.records.standing import Standing
from oodscope.leaderboard.site.fronts import lead_sentence
from oodscope.leaderboard.site.render import render_pages
from oodscope.leaderboard.verify.naming import check_id
from tests.leaderboard.board_factory import make_entry, make_measurements
from tests.report.reading import read

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import board_networks
import board_rows as own_board

CSV_HEAD = "training,detector,seeds,near,near_sd,accuracy,accuracy_sd"
RESULTS = Path(__file__).parents[2] / "docs" / "results" / "data"
ROWS = {"cifar10": 61, "cifar100": 57, "imagenet200_ood": 56, "imagenet1k_ood": 97, "imagenet200_fsood": 60}
ROWS |= {"imagenet1k_fsood": 83}


@pytest.fixture(scope="module")
def front():
    return read(dict(render_pages(Board(tuple(published_standings()))))["index.html"])


def test_every_row_of_six_boards_is_there_once():
    assert {name: sum(own == name for own, _ in board_rows()) for name in BOARDS} == ROWS
    (table,) = published_tables()
    twice = [row for name, row in board_rows() if stated_in_paper(table, name, row) is not None]
    assert len(twice) + len(board_standings()) == sum(ROWS.values())
    ids = [each.entry.id for each in published_standings()]
    assert len(set(ids)) == len(ids)
    assert "MIT" in (files(boards.__package__) / "openood_boards" / "LICENSE").read_text(encoding="utf-8")


def test_rows_are_reported_with_their_digits_and_never_ranked():
    assert {each.tier for each in board_standings()} == {"reported"}
    (scale,) = [
        each for each in board_standings() if (each.entry.method, each.entry.benchmark.name) == ("SCALE", "cifar10")
    ]
    (row,) = [row for name, row in board_rows() if name == "cifar10" and row["Postprocessor"] == "SCALE"]
    near = next(each for each in scale.entry.reported if each.group == "near")
    assert f"{near.printed} ± {near.spread}" == row["Near-OOD_AUROC"]
    assert scale.entry.detector.name == "scale"
    assert all(not each.flags for each in board_standings()), "paper and boards agree on every row that both have"


def test_a_row_that_paper_and_board_state_differently_is_disputed(monkeypatch):
    name, row = next((name, row) for name, row in board_rows() if row["Postprocessor"] == "KNN")
    changed = {**row, "Near-OOD_AUROC": "99.99 ± 0.10"}
    monkeypatch.setattr(boards, "board_rows", lambda: ((name, changed),))
    (standing,) = board_standings.__wrapped__()
    assert standing.flags[0].startswith("disputed: the paper prints 90.64")


def test_nobody_takes_their_names():
    with pytest.raises(Exception, match="published table"):
        check_id(f"{boards.PREFIX}-mine")


def test_the_front_page_has_a_table_of_every_benchmark_at_once(front):
    tabs = [each.text for each in front.all("nav", **{"class": "fronts"})[0].all("a")]
    assert tabs == ["CIFAR-10", "CIFAR-100", "ImageNet-1K", "ImageNet-200"]
    tables = front.all("table", **{"class": "board top"})
    assert len(tables) == len(tabs)
    for table in tables:
        lines = [row for row in table.all("tr") if row.all("td")]
        near = [float(row.all("td")[1].attributes["data-value"]) for row in lines]
        assert len(lines) == 15 and near == sorted(near, reverse=True)
        assert all(re.fullmatch(r"\(\d+(–\d+)?\)|cannot say", row.all("td")[0].text) for row in lines)
        assert lines[0].all("td")[0].text.startswith(("(1", "cannot say"))
    first = tables[0].all("tr")[1].all("th")[0].text
    (lead, *_) = front.all("p", **{"class": "wide lead"})
    assert first.strip() in lead.text and "Not certain: " in lead.text
    assert lead.text.endswith("nobody computed it again.")


def test_methods_stand_beside_benchmarks(front):
    (matrix,) = front.all("table", **{"class": "board matrix"})
    (knn,) = [row for row in matrix.all("tr") if row.all("th")[0].text == "KNN"]
    assert float(knn.all("td")[0].attributes["data-value"]) == 0.9064
    assert re.fullmatch(r"\d\d\.\d\d.*", knn.all("td")[1].text)


def test_ranks_by_printed_spreads_keep_their_promise():
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(200):
        draws = 0.9 + 0.003 * rng.normal(size=(20, 3))
        ranks = spread_ranks(draws.mean(axis=1).tolist(), draws.std(axis=1).tolist())
        wrong += any(rank != (1, 20) for rank in ranks)
    assert wrong <= 20, "equal rows are called different in about 5 % of the tables"
    apart = spread_ranks([0.95, 0.90, 0.899, 0.5], [0.002, 0.002, None, 0.1])
    assert apart == [(1, 1), (2, 2), None, (3, 3)]
    assert spread_ranks([0.9, 0.8], [0.01, None]) == [None, None]


def test_our_own_rows_stand_beside_the_published_ones():
    own = {each.entry.id: each for each in own_standings()}
    assert len(own) >= len(own_rows()) > 35
    assert all(check_id_is_taken(name) for name in own)
    (row,) = [
        row for row in own_rows() if (row["benchmark"], row["training"], row["detector"]) == ("cifar10", "CE", "knn")
    ]
    knn = own_standing(row)
    assert knn.tier == "reported", "a row without scores is not checked by anybody"
    groups = {(row.metric, row.group) for row in knn.measurements}
    assert groups == {("auroc", "near"), ("accuracy", "id")}, "our far sets are not the published ones"
    (near,) = knn.measurements.filter(metric="auroc")
    frame = pd.read_parquet(RESULTS / "training-cifar10.parquet").query("method == 'CE' and kept == 'best'")
    seeds = frame[(frame["detector"] == "knn") & (frame["group"] == "near")].groupby("seed")["auroc"].mean()
    assert near.value == pytest.approx(seeds.mean() / 100, abs=5e-5) and len(seeds) == 3


def trained(method, detector, near, seeds=1, held=False):
    """Rows of a table of trained networks."""
    sets = ("cifar100", "tin_held_100" if held else "tin")
    return [
        (method, seed, "best", 95.0 + seed, detector, "near", name, near + seed + place)
        for seed in range(seeds)
        for place, name in enumerate(sets)
    ]


def test_trainings_stand_on_the_board_with_their_scores_and_exposed_ones_apart(tmp_path, monkeypatch):
    made = [*trained("CE", "msp", 88, 3), *trained("CE", "knn", 90, 3), *trained("CE-tf32", "msp", 88)]
    made += [*trained("CSI", "csi", 91), *trained("CSI", "msp", 89), *trained("CSI", "knn", 80)]
    made += [*trained("CSI-first", "msp", 70), *trained("MOS-released", "mos", 71), *trained("T2FNorm", "msp", 93, 2)]
    made += [*trained("MixOE", "msp", 89, held=True), *trained("UDG", "msp", 90, 3, held=True)]
    made += [*trained("OE", "msp", 99)]  # tested on classes that it learned from
    columns = ["method", "seed", "kept", "accuracy", "detector", "group", "set", "auroc"]
    file, folder = tmp_path / "training-cifar10.parquet", tmp_path / "own"
    pd.DataFrame(made, columns=columns).to_parquet(file)
    folder.mkdir()
    (folder / "cifar10.csv").write_text(
        f"{CSV_HEAD}\nCE,knn,3,80,0.1,95,0.1\nCE,vim,1,87,,95,\nCE,msp,1,80,,95,\n", encoding="utf-8"
    )
    for module in (own_board, own_module):
        monkeypatch.setattr(module, "own_folder", lambda: folder)
    own_board.main([str(file)])
    rows = [{"benchmark": "cifar10", **row} for row in pd.read_csv(
        folder / "cifar10.csv", dtype=str, keep_default_na=False).to_dict("records")]  # fmt: skip
    found = {(row["training"], row["detector"]): row for row in rows}
    assert set(found) == {("CE", "msp"), ("CE", "knn"), ("CE", "vim"), ("CSI", "csi"), ("CSI", "msp"), ("UDG", "msp"),
                          ("T2FNorm", "msp"), ("MixOE", "msp")}, "no other scores"  # fmt: skip
    assert found["CE", "vim"]["near"] == "87", "a single run of before stays"
    assert (found["CE", "knn"]["near"], found["CE", "knn"]["near_sd"]) == ("91.50", "0.82")
    assert (found["T2FNorm", "msp"]["seeds"], found["T2FNorm", "msp"]["near_sd"]) == ("2", "")
    assert found["MixOE", "msp"]["recipe"] == "MixOE, 10 epochs after cross-entropy, 100 epochs"
    standings = {(row["training"], row["detector"]): own_standing(row) for row in rows}
    tracks = {pair: each.entry.track for pair, each in standings.items()}
    exposed = {("MixOE", "msp"), ("UDG", "msp")}
    assert {pair for pair, track in tracks.items() if track == "outlier-data"} == exposed
    assert {tracks["CSI", "csi"], tracks["T2FNorm", "msp"]} == {"training"} and tracks["CE", "vim"] == "post-hoc"
    assert all(
        any("learned from half" in flag for flag in standings[pair].flags) == (pair in exposed) for pair in tracks
    )
    assert "docs/results/training-cifar10.md" in standings["CSI", "csi"].entry.notes[0]
    before = (folder / "cifar10.csv").read_text(encoding="utf-8")
    own_board.main([str(file)])
    assert (folder / "cifar10.csv").read_text(encoding="utf-8") == before, "the same rows once more"


def check_id_is_taken(name):
    with pytest.raises(DataError, match="those of a published table"):
        check_id(name)
    return True


def test_entries_that_were_run_again_come_with_their_receipts(tmp_path, monkeypatch):
    standings = [run_again(tmp_path, seed) for seed in range(3)]
    lines = [board_networks.line(each, tmp_path) for each in standings]
    (tmp_path / "cifar10.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "cifar10.csv").write_text(
        f"{CSV_HEAD}\nCE,knn,3,90,0.1,95,0.1\nCE,msp,3,88,0.1,95,0.1\n", encoding="utf-8"
    )
    monkeypatch.setattr(own_module, "own_folder", lambda: tmp_path)
    for each in (own_rows, own_standings):
        monkeypatch.setattr(own_module, each.__name__, each.__wrapped__)
    found = own_module.own_standings()
    assert [each.entry.detector.name for each in found] == ["knn", "knn", "knn", "msp"], "no row beside checked entries"
    assert [each.tier for each in found] == ["retrained"] * 3 + ["reported"]
    assert found[0].covered == ("scores", "predictions") and "makers of this package" in found[0].flags[0]
    (near,) = found[1].measurements.filter(metric="auroc", group="near", set="mean")
    (before,) = standings[1].measurements.filter(metric="auroc", group="near", set="mean")
    assert (near.value, near.low, near.high) == (before.value, before.low, before.high)
    assert not found[0].measurements.filter(metric="aupr_in"), "the package keeps what the board shows"
    pages = dict(render_pages(Board((*board_standings(), *found))))
    front = read(pages["index.html"])
    assert "Of the rows that were computed again KNN leads near-OOD with" in front.text
    assert "Further down, the highest that were computed again" in front.text, "it is lower than fifteen reported rows"
    table = read(pages["benchmarks/cifar10@openood-1.5/standard.html"])
    assert "3 seeds" in table.text and "retrained" in table.text


def run_again(board, seed):
    """An entry of the tier retrained, and its receipt."""
    knn = DetectorUse(id="knn", name="knn", version=1)
    made = make_entry(f"cifar10-knn-{seed}", method="KNN", detector=knn, group="cifar10-knn")
    digest = "0" * 64
    receipt = Receipt(
        entry=made.id,
        **dict.fromkeys(("record", "scores", "activations"), digest),
        weights_hash=str(seed) * 64,
        detector="knn",
        detector_version=1,
        covered=("scores", "predictions"),
        predictions=0,
        **dict.fromkeys(("in_order", "repeated", "shuffled", "one_by_one"), 0.0),
        one_by_one_rows=5,
        tolerance=1e-4,
        verdict="re-executed",
        created="2026-11-18T00:00:00+00:00",
        oodscope_version="0.1.0",
    )
    write_receipt(board, receipt)
    return Standing(made, "retrained", make_measurements(made, random.Random(seed), 0.8), covered=receipt.covered)


class Said:
    def __init__(self, method, ranked=False, rank=None):
        self.entry = type("Entry", (), {"method": method, "id": method})
        self.row = type("Row", (), {"ranked": ranked})
        self.rank = rank


def test_who_leads_is_said_with_its_certainty():
    single = [(Said("A"), Number(0.9)), (Said("B"), Number(0.8))]
    assert lead_sentence(single).endswith("a single run, so whether it leads cannot be said.")
    spread = [(Said("A"), Number(0.9, sd=0.001)), (Said("B"), Number(0.8, sd=0.001))]
    assert "no other row with a spread may be first for other training runs" in lead_sentence(spread)
    close = [(Said("A"), Number(0.9, sd=0.01)), (Said("B"), Number(0.895, sd=0.01)), (Said("C"), Number(0.89))]
    assert "1 of 1 others may be first too for other training runs, 1 single run cannot say" in lead_sentence(close)
    ranked = [(Said("A", True, (1, 2)), Number(0.9)), (Said("B", True, (1, 2)), Number(0.89))]
    assert "A leads near-OOD with 90.00; not certain: 1 more may be first" in lead_sentence(ranked)
    assert "may be first." in lead_sentence([(Said("A", True, (1, 1)), Number(0.9))])
    assert lead_sentence([]) == ""
