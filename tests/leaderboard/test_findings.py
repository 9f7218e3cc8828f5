"""What a hostile entry once could do: freeze a board, borrow a tier, hand-pick parameters, take a page."""

import json
from hashlib import sha256

import pytest

from oodscope.base.errors import DataError, OodscopeError, UsageError
from oodscope.detectors.base import parameters_json
from oodscope.detectors.registry import create_detector
from oodscope.leaderboard.published.table import published_standings
from oodscope.leaderboard.records.board import Board
from oodscope.leaderboard.records.folder import list_hash, read_entry, read_scores
from oodscope.leaderboard.records.keeping import Stamp, write_receipt, write_stamp
from oodscope.leaderboard.records.records import DetectorUse
from oodscope.leaderboard.records.standing import Standing
from oodscope.leaderboard.site import render
from oodscope.leaderboard.site.render import sound_pages
from oodscope.leaderboard.verify.defaults import by_hand
from oodscope.leaderboard.verify.naming import check_id
from oodscope.leaderboard.verify.publishing import pin_lists
from oodscope.leaderboard.verify.rerunning import rerun
from oodscope.leaderboard.verify.submitting import submit
from oodscope.leaderboard.verify.verifying import verify, verify_each
from tests.leaderboard.board_factory import make_board
from tests.leaderboard.leaderboard_world import activations, copied, edit, enter, few_replicates, run  # noqa: F401

pytestmark = pytest.mark.slow

PUBLISHED = published_standings()[0].entry.id
RESERVED = [PUBLISHED, "openood-v1.5-anything", "errata.json", "receipts", "received", "lists"]
HUMAN = ("standard", "human_centric")


def rewritten(folder, change):
    """An entry with other scores, its checksum and lists made to fit: what a careful liar would submit."""
    entry = read_entry(folder)
    table = read_scores(folder, entry)
    spoiled = type(table)(change(table.frame), table.context)
    spoiled.save(folder / "scores.parquet")

    def fit(content):
        content["scores"]["sha256"] = sha256((folder / "scores.parquet").read_bytes()).hexdigest()
        content["scores"]["rows"] = len(spoiled)
        content["claims"], content["thresholds"], content["model"]["id_accuracy"] = [], [], None
        for name, told in content["benchmark"]["sets"].items():
            rows = spoiled.frame[(spoiled.frame["set"] == name).to_numpy()]
            if len(rows):
                told["list_hash"], told["n"] = list_hash(rows), len(rows)

    return edit(folder, fit)


class TestReservedNames:
    """H1."""

    @pytest.mark.parametrize("name", RESERVED)
    def test_no_entry_is_submitted_under_one(self, tmp_path, name):
        with pytest.raises(UsageError, match="cannot have the id"):
            submit(run(), tmp_path / "board", id=name, method="M", detector="knn")
        assert not (tmp_path / "board").exists()

    @pytest.mark.parametrize("name", ["Knn", "../x", "a/b", ".hidden", "", "a" * 81, 5, None])
    def test_what_is_no_id(self, name):
        with pytest.raises(DataError, match="the id must be"):
            check_id(name)

    def test_one_on_a_board_costs_only_itself(self, tmp_path):
        board = tmp_path / "board"
        enter(board, "honest")
        copied(board).rename(board / PUBLISHED)
        edit(board / PUBLISHED, lambda content: content.update(id=PUBLISHED))
        found = verify_each(board)
        assert [each.entry.id for each in found.board.standings] == ["honest"]
        assert "published table" in found.refused[PUBLISHED]
        pages = sound_pages(Board((*found.board.standings, *published_standings()))).pages
        assert "entries/honest/entry.json" in pages

    def test_whatever_one_entry_raises_costs_only_itself(self, tmp_path, monkeypatch):
        board = tmp_path / "board"
        enter(board, "honest")
        enter(board, "odd")
        from oodscope.leaderboard.verify import verifying

        real = verifying.read_entry

        def reading(folder):
            if folder.name == "odd":
                raise RuntimeError("nobody foresaw this")
            return real(folder)

        monkeypatch.setattr(verifying, "read_entry", reading)
        found = verify_each(board)
        assert [each.entry.id for each in found.board.standings] == ["honest"]
        assert "nobody foresaw this" in found.refused["odd"]

    def test_a_page_that_cannot_be_made_costs_only_its_entry(self, monkeypatch):
        board = make_board(12)
        real = render.render_pages

        def rendering(given, **options):
            if any(each.entry.id in ("entry-0003", "entry-0007") for each in given.standings):
                raise KeyError("bad")
            yield from real(given, **options)

        monkeypatch.setattr(render, "render_pages", rendering)
        found = sound_pages(board)
        assert set(found.refused) == {"entry-0003", "entry-0007"}
        assert {each.entry.id for each in board.standings} - set(found.refused) == {
            each.entry.id for each in found.board.standings
        }
        assert "index.html" in found.pages

    def test_a_damaged_receipt_costs_the_tier_and_is_named(self, tmp_path):
        folder = enter(tmp_path / "board")
        path = write_receipt(folder.parent, rerun(folder, activations(), alone=4))
        assert verify(folder).tier == "re-executed"
        path.write_text(path.read_text().replace("{", "[", 1))
        standing = verify(folder)
        assert standing.tier == "recomputed"
        assert any("receipt cannot be read" in flag and "leaderboard rerun" in flag for flag in standing.flags)

    @pytest.mark.parametrize("name", ["errata.json", "lists/x.json"])
    def test_damaged_files_of_the_keeper_are_refused_by_name(self, tmp_path, name):
        board = tmp_path / "board"
        enter(board)
        (board / "lists").mkdir()
        (board / name).write_text("{")
        with pytest.raises(OodscopeError, match=f"{name}.*or remove the file"):
            verify_each(board)


class TestReExecution:
    """H2: the tier covers all that the numbers depend on."""

    def test_predictions_that_are_the_labels(self, tmp_path):
        folder = rewritten(enter(tmp_path / "board", protocols=HUMAN), _always_right)
        accuracy = [row.value for row in verify(folder).measurements.filter(metric="accuracy", group="id")]
        assert 1.0 in accuracy, "the forged numbers follow from the forged scores"
        receipt = rerun(folder, activations(), alone=4)
        assert receipt.verdict == "different" and receipt.predictions > 0
        write_receipt(folder.parent, receipt)
        standing = verify(folder)
        assert standing.tier == "recomputed" and not standing.ranked
        assert any("arg max of the published logits" in flag for flag in standing.flags)

    @pytest.mark.parametrize("role", ["id_val", "id_train"])
    def test_rows_that_were_picked(self, tmp_path, role):
        def picked(frame):
            gone = frame.index[(frame["role"] == role).to_numpy()][:5]
            return frame.drop(index=gone).reset_index(drop=True)

        folder = rewritten(enter(tmp_path / "board", protocols=HUMAN), picked)
        with pytest.raises(DataError, match=f"'{role}': not the published images"):
            rerun(folder, activations(), alone=4)

    @pytest.mark.parametrize("role", ["id_val", "id_train"])
    def test_labels_that_were_changed(self, tmp_path, role):
        def other(frame):
            rows = (frame["role"] == role).to_numpy()
            return frame.assign(label=frame["label"].where(~rows, frame["prediction"]))

        folder = rewritten(enter(tmp_path / "board", protocols=HUMAN), other)
        with pytest.raises(DataError, match=f"'{role}': not the published images, labels or order"):
            rerun(folder, activations(), alone=4)

    @pytest.mark.parametrize("role", ["id_val", "id_train"])
    def test_pinned_lists_hold_for_what_was_learned_from(self, tmp_path, role):
        board = tmp_path / "board"
        pin_lists(board, run(0, HUMAN))

        def picked(frame):
            gone = frame.index[(frame["role"] == role).to_numpy()][:5]
            return frame.drop(index=gone).reset_index(drop=True)

        folder = enter(board, protocols=HUMAN)
        verify(folder)
        with pytest.raises(DataError, match=f"'{role}'.*pinned list differs"):
            verify(rewritten(folder, picked))

    def test_searched_parameters_are_searched_again(self, tmp_path):
        folder = enter(tmp_path / "board", detector="react+msp", tune="ood_val")
        receipt = rerun(folder, activations(), alone=4)
        assert receipt.verdict == "re-executed" and "parameters" in receipt.covered
        chosen = read_entry(folder).detector.params["percentile"]
        other = next(each for each in (85, 90, 95, 99) if each != chosen)
        edit(folder, lambda content: content["detector"]["params"].update(percentile=other))
        receipt = rerun(folder, activations(), alone=4)
        assert receipt.verdict == "different" and f"chooses percentile = {chosen}" in receipt.reason

    def test_the_standing_says_what_was_computed_again(self, tmp_path):
        folder = enter(tmp_path / "board", protocols=HUMAN)
        write_receipt(folder.parent, rerun(folder, activations(), alone=4))
        standing = verify(folder)
        assert standing.covered == ("scores", "predictions", "labels", "id_val", "id_train", "parameters")
        pages = sound_pages(Board((standing,))).pages
        page = pages["methods/knn.html"]
        assert "Computed again: scores, predictions, labels, id_val, id_train, parameters" in page

    def test_a_receipt_of_another_record_does_not_count(self, tmp_path):
        folder = enter(tmp_path / "board")
        write_receipt(folder.parent, rerun(folder, activations(), alone=4))
        edit(folder, lambda content: content["detector"]["params"].update(k=5))
        assert verify(folder).tier == "recomputed"


class TestDefaults:
    """H4."""

    def test_hand_picked_parameters_are_a_track_of_their_own(self, tmp_path):
        board = tmp_path / "board"
        assert verify(enter(board)).tuning == "default"
        folder = enter(board, "picked")
        edit(folder, lambda content: content["detector"].update(params={"k": 5, "bank_fraction": 1.0, "seed": 0}))
        assert verify(folder).tuning == "by hand"
        found = verify_each(board).board
        assert found.tables("tiny@1", "standard") == [("post-hoc", "by hand"), ("post-hoc", "default")]

    @pytest.mark.parametrize("change", [{"params": {}}, {"name": "python:mine:Detector"}, {"name": "no_such"}])
    def test_what_is_not_the_registrys_is_by_hand(self, tmp_path, change):
        folder = edit(copied(tmp_path), lambda content: content["detector"].update(change))
        assert verify(folder).tuning == "by hand"

    @pytest.mark.parametrize("name", ["knn", "react", "react+msp", "ash_s+ebo", "vim"])
    def test_the_catalogue_says_what_the_classes_say(self, name, tmp_path):
        made = create_detector(name)
        entry = verify(copied(tmp_path)).entry
        use = DetectorUse(id=made.id, name=made.name, params=parameters_json(made))
        assert not by_hand(entry.model_copy(update={"detector": use}))
        other = use.model_copy(update={"params": {**use.params, "no_such": 1}})
        assert by_hand(entry.model_copy(update={"detector": other}))

    def test_a_search_may_change_its_grid_only(self, tmp_path):
        folder = enter(tmp_path / "board", tune="ood_val")
        assert verify(folder).tuning == "ood_val"
        edit(folder, lambda content: content["detector"]["params"].update(bank_fraction=0.5))
        assert verify(folder).tuning == "by hand"


class TestFamilies:
    """H5."""

    @pytest.mark.parametrize("odd", ["method", "submitter"])
    def test_one_group_name_merges_nobody(self, odd):
        first, second = (self.seeds(method, who) for method, who in self.pairs(odd))
        rows = Board((*first, *second)).rows("cifar10@openood-1.5", "standard", "training", "default")
        assert sorted(len(row.standings) for row in rows) == [3, 3]
        for row in rows:
            assert len({(each.entry.method, each.submitter) for each in row.standings}) == 1

    @staticmethod
    def pairs(odd):
        return [("A", "ada"), ("B", "ada")] if odd == "method" else [("A", "ada"), ("A", "eve")]

    @staticmethod
    def seeds(method, submitter):
        import random

        from oodscope.leaderboard.records.records import ModelUse
        from tests.leaderboard.board_factory import make_entry, make_measurements

        rng = random.Random(1)
        for number in range(3):
            entry = make_entry(
                f"{method}-{submitter}-{number}".lower(),
                method=method,
                group="shared",
                track="training",
                model=ModelUse(name="net", architecture="ResNet-18", seed=number),
            )
            yield Standing(entry, "retrained", make_measurements(entry, rng), submitter=submitter)


class TestReportedOnly:
    """H6."""

    PRINTED = {"protocol": "standard", "metric": "auroc", "group": "near", "set": "mean", "source": "Table 1"}

    def standing(self, tmp_path):
        folder = copied(tmp_path / "board")
        (folder / "scores.parquet").unlink()
        said = [{**self.PRINTED, "printed": "99.99"}]
        edit(folder, lambda content: content.update(scores=None, claims=[], thresholds=[], reported=said))
        return verify(folder)

    def test_it_stands_apart(self, tmp_path):
        standing = self.standing(tmp_path)
        assert standing.apart and not standing.ranked
        pages = sound_pages(Board((standing, *published_standings()))).pages
        assert [path for path, text in pages.items() if "99.99" in text and path.endswith(".html")] == ["reported.html"]
        assert "knn-tiny" not in pages["methods/knn.html"]
        assert json.loads(pages["entries/knn-tiny/entry.json"])["id"] == "knn-tiny"
        assert "knn-tiny" not in pages["data/everything.csv"] and "knn-tiny" in pages["data/reported.csv"]

    def test_published_tables_stand_in_the_tables_with_a_badge(self, tmp_path):
        pages = sound_pages(Board(tuple(published_standings()))).pages
        page = pages["benchmarks/cifar10@1.5/standard.html"] if "benchmarks/cifar10@1.5/standard.html" in pages else ""
        page = page or next(text for path, text in pages.items() if path.startswith("benchmarks/cifar10"))
        assert page.count('class="tier curated"') > 10
        assert not any(each.apart for each in published_standings())


class TestStamp:
    """H7."""

    def test_the_time_is_that_of_receipt(self, tmp_path):
        folder = edit(copied(tmp_path / "board"), lambda content: content.update(submitted="1971-01-01T00:00:00+00:00"))
        assert verify(folder).dated.startswith("1971")
        write_stamp(folder.parent, Stamp(entry="knn-tiny", received="2026-05-01T10:00:00+00:00", submitter="ada"))
        standing = verify(folder)
        assert (standing.dated, standing.submitter) == ("2026-05-01T10:00:00+00:00", "ada")
        pages = sound_pages(Board((standing,))).pages
        assert "2026-05-01" in pages["methods/knn.html"] and "1971" not in pages["methods/knn.html"]

    def test_an_earlier_date_in_the_record_does_not_come_first(self, tmp_path):
        board = tmp_path / "board"
        for name, when in (("honest", "2026-05-01"), ("later", "2026-06-01")):
            enter(board, name)
            write_stamp(board, Stamp(entry=name, received=f"{when}T00:00:00+00:00", submitter="ada"))

        def longer(frame):
            return frame.assign(sample_id=frame["sample_id"].astype(str) + "x")

        rewritten(board / "later", longer)
        edit(board / "later", lambda content: content.update(submitted="1971-01-01T00:00:00+00:00"))
        flags = {each.entry.id: each.flags for each in verify_each(board).board.standings}
        assert any("is not the list of entry honest" in flag for flag in flags["later"])
        assert not any("is not the list" in flag for flag in flags["honest"])


def _always_right(frame):
    known = (frame["label"] >= 0).to_numpy()
    return frame.assign(prediction=frame["prediction"].where(~known, frame["label"]))
