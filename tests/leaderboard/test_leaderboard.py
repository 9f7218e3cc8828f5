"""The road of an entry: submitted from a run, verified from its scores, run again, superseded, ranked."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

import oodscope as oods
from oodscope.activations.activations import Activations
from oodscope.activations.store.published import PublishedActivations
from oodscope.base.errors import ActivationError, DataError, DetectorError, OodscopeError, StorageError, UsageError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.generation.variations.registry import create_variation
from oodscope.leaderboard.records.board import OVERLAP, PAIRED
from oodscope.leaderboard.records.folder import read_entry, read_scores
from oodscope.leaderboard.records.keeping import append_erratum as supersede
from oodscope.leaderboard.records.keeping import write_receipt
from oodscope.leaderboard.records.records import Reported
from oodscope.leaderboard.records.text import NOT_KNOWN
from oodscope.leaderboard.verify.about import About
from oodscope.leaderboard.verify.differing import beyond_noise
from oodscope.leaderboard.verify.examining import suspicions, tied_pairs
from oodscope.leaderboard.verify.publishing import pin_lists
from oodscope.leaderboard.verify.rerunning import TOLERANCE, rerun, verdict_of
from oodscope.leaderboard.verify.submitting import submit
from oodscope.leaderboard.verify.verifying import verify, verify_all, verify_each
from oodscope.results.measurement import Measurement
from oodscope.runs.evaluation.run import Result
from oodscope.runs.evaluation.scoring import fit_scorers
from tests.leaderboard.leaderboard_world import ABOUT, activations, edit, enter, few_replicates, run, store  # noqa: F401
from tests.tiny import benchmark, classifier

pytestmark = pytest.mark.slow

ALL = ("standard", "full_spectrum", "human_centric")


@pytest.fixture
def board(tmp_path):
    return tmp_path / "board"


def executed(folder, seed=0, **options):
    """Run an entry again and put the receipt where the board keeps it."""
    receipt = rerun(folder, activations(seed), alone=12, **options)
    write_receipt(folder.parent, receipt)
    return receipt


class TestSubmit:
    def test_the_record_is_filled_from_the_run(self, board):
        entry = read_entry(enter(board, protocols=ALL))
        clf, bench = classifier(), benchmark()
        assert entry.model.weights_hash == clf.fingerprint
        assert (entry.model.architecture, entry.model.head_path) == ("TinyNet", "head")
        assert entry.model.trained_on == ("id_train",)
        used = entry.benchmark.sets
        assert {name: each.fingerprint for name, each in used.items()} == {
            images.name: images.fingerprint for _, images in bench.members()
        }
        prepared = entry.benchmark.preprocessing
        assert (prepared.size, prepared.mean, prepared.std) == (8, (0.5,) * 3, (0.5,) * 3)
        assert "bilinear" in prepared.resize_filter
        detector = entry.detector
        assert detector.params == {"k": "auto", "bank_fraction": None, "seed": 0}
        assert (detector.fit_split, detector.fit_rows) == ("id_train, id_val", 200)
        assert (detector.extra_forwards, detector.extra_backwards) == (0, 0)
        assert "k-th nearest" in detector.score_form
        assert entry.execution.libraries["torch"] and entry.execution.precision == "float32"
        assert entry.protocols == dict.fromkeys(ALL, 1)
        assert len(entry.thresholds) == 6

    def test_the_thresholds_are_those_of_the_scores(self, board):
        folder = enter(board, protocols=ALL)
        entry = read_entry(folder)
        frame = read_scores(folder, entry).frame
        right = frame[frame["label"] == frame["prediction"]]
        for told in entry.thresholds:
            if told.source == "val_correct":
                tested = right.loc[right["role"] == "id_test", "knn"]
                assert told.false_rejection == pytest.approx((tested >= told.gamma).mean())
        edit(folder, lambda content: content["thresholds"][0].update(gamma=9.0))
        with pytest.raises(DataError, match="claims threshold95_val_correct"):
            verify(folder)

    @pytest.mark.parametrize("name", ["tied", "false_rejection"])
    def test_the_other_numbers_of_a_threshold_are_checked_too(self, board, name):
        folder = enter(board, protocols=ALL)
        edit(folder, lambda content: content["thresholds"][0].update({name: 0.77}))
        with pytest.raises(DataError, match="the entry claims"):
            verify(folder)

    def test_a_search_is_recorded_with_its_validation(self, board):
        search = read_entry(enter(board, detector="react+msp", tune="ood_val")).detector.search
        assert (search.tuning, search.grid_size) == ("ood_val", 4)  # percentiles
        assert 0.0 < search.validation_auroc <= 1.0 and len(search.validation_hash) == 64

    def test_an_old_run_says_what_it_does_not_know(self, board, tmp_path):
        old = shutil.copytree(run(), tmp_path / "old")
        content = json.loads((old / "run.json").read_text())
        for name in ("preprocess", "architecture", "head_path", "trained_on", "pretrained_on"):
            content["record"].pop(name)
        (old / "run.json").write_text(json.dumps(content))
        entry = read_entry(submit(old, board, id="old", method="KNN", detector="knn"))
        assert entry.model.architecture == entry.benchmark.preprocessing.resize_filter == NOT_KNOWN
        assert any(flag.startswith("incomplete: not known: architecture") for flag in verify(board / "old").flags)

    def test_nothing_is_overwritten(self, board):
        enter(board)
        with pytest.raises(StorageError, match="never overwritten"):
            enter(board)

    def test_refusals_are_for_people(self, board):
        with pytest.raises(DataError, match="Name one: --detector"):
            submit(run(), board, id="x", method="M")
        with pytest.raises(OodscopeError, match="Did you mean 'knn'"):
            submit(run(), board, id="x", method="M", detector="knm")
        with pytest.raises(OodscopeError, match="id"):
            submit(run(), board, id="../x", method="M", detector="knn")
        with pytest.raises(UsageError, match="keeps its own files"):
            submit(run(), board, id="receipts", method="M", detector="knn")
        assert not (board / "x").exists()


class TestVerify:
    def test_every_number_is_that_of_the_run(self, board):
        """The same code and the same scores: equal to the last bit."""
        for detector in ("knn", "react+msp", "klm"):
            standing = verify(enter(board, detector.replace("+", "-"), detector, protocols=ALL))
            result = Result.load(run(0, ALL))
            expected = {
                (m.protocol, m.group, m.set, m.metric): (m.value, m.low, m.high)
                for m in result.measurements
                if m.detector in ("", detector)
            }
            found = {(m.protocol, m.group, m.set, m.metric): (m.value, m.low, m.high) for m in standing.measurements}
            assert found == expected
            assert standing.tier == "recomputed" and not standing.ranked

    def test_auroc_against_scikit_learn(self, board):
        folder = enter(board)
        frame = read_scores(folder, read_entry(folder)).frame
        rows = frame[frame["set"].isin(["id_test", "snow"])]
        expected = roc_auc_score(rows["set"] == "snow", rows["knn"])
        (found,) = verify(folder).measurements.filter(metric="auroc", set="snow", protocol="standard")
        assert found.value == pytest.approx(expected, abs=1e-12)

    def test_reported_beside_measured(self, board):
        value = (
            100 * verify(enter(board, "plain")).measurements.filter(metric="auroc", set="mean", group="near")[0].value
        )
        place = {"protocol": "standard", "metric": "auroc", "group": "near", "source": "Table 1"}
        said = [
            {**place, "set": "mean", "printed": f"{value:.2f}"},
            {**place, "set": "mean", "printed": f"{value - 30:.1f}"},
            {**place, "set": "no such set", "printed": "50"},
        ]
        standing = verify(enter(board, about=About.model_validate({**ABOUT, "reported": said})))
        assert [each.above_noise for each in standing.differences] == [False, True]
        assert standing.disputed == [standing.differences[1]]
        assert standing.flags[0] == "disputed: 1 of 2 reported numbers lie beyond noise"
        assert any(flag.startswith("unmatched: auroc of near no such set") for flag in standing.flags)

    def test_noise_is_interval_and_rounding(self):
        def row(**ends):
            about = {"run": "r", "benchmark": "b", "benchmark_version": "1", "model": "m", "protocol": "standard"}
            return Measurement(**about, set="s", group="near", metric="auroc", value=0.88, **ends)

        def said(printed, unit="percent"):
            place = {"protocol": "standard", "metric": "auroc", "group": "near", "set": "s", "source": "T"}
            return Reported(**place, printed=printed, unit=unit)

        within = row(low=0.871, high=0.889)
        for printed, beyond in [
            *(("87.1", False), ("87.05", True), ("87.0", True), ("88.9", False), ("88.95", True)),
            *(("87", False), ("86", True), ("89", False), ("90", True)),
        ]:
            assert beyond_noise(said(printed), within) is beyond, printed
        # the end of the rounding just touches the end of the interval
        assert not beyond_noise(said("87.0"), row(low=0.8705, high=0.889))
        assert not beyond_noise(said("89.0"), row(low=0.87, high=0.8895))
        bare = row()
        assert not beyond_noise(said("88.0"), bare) and beyond_noise(said("88.1"), bare)
        assert not beyond_noise(said("0.88", "plain"), bare) and beyond_noise(said("0.8801", "plain"), bare)

    def test_pinned_lists_refuse_other_images(self, board):
        folder = enter(board)
        assert any(flag.startswith("unchecked:") for flag in verify(folder).flags)
        pin_lists(board, run())
        assert not any(flag.startswith("unchecked:") for flag in verify(folder).flags)
        frame = read_scores(folder, read_entry(folder)).frame
        moved = frame.assign(sample_id=frame["sample_id"] + "x")

        def other_lists(content):
            from oodscope.leaderboard.records.folder import list_hash

            for name, told in content["benchmark"]["sets"].items():
                rows = moved[(moved["set"] == name).to_numpy()]
                if len(rows):
                    told["list_hash"] = list_hash(rows)

        other = shutil.copytree(folder, board / "other")
        scores = read_scores(folder, read_entry(folder))
        type(scores)(moved, scores.context).save(other / "scores.parquet")
        from hashlib import sha256

        digest = sha256((other / "scores.parquet").read_bytes()).hexdigest()
        edit(other, lambda content: (other_lists(content), content.update(id="other")))
        edit(other, lambda content: content["scores"].update(sha256=digest))
        with pytest.raises(DataError, match="pinned list differs"):
            verify(other)
        shutil.rmtree(board / "lists")
        assert verify(other).tier == "recomputed"
        # without pinned lists, the later of two entries that disagree is marked
        edit(other, lambda content: content.update(submitted="2126-01-01T00:00:00+00:00"))
        flags = {each.entry.id: each.flags for each in verify_all(board).standings}
        assert any("is not the list of entry knn-tiny" in flag for flag in flags["other"])
        assert not any("is not the list" in flag for flag in flags["knn-tiny"])

    def test_lists_of_a_version_never_change(self, board):
        path = pin_lists(board, run())
        assert pin_lists(board, run()) == path
        content = json.loads(path.read_text())
        content["sets"]["snow"][1] += 1
        path.write_text(json.dumps(content))
        with pytest.raises(StorageError, match="new version"):
            pin_lists(board, run())

    def test_a_set_that_the_board_has_not_pinned(self, board):
        folder = enter(board)
        path = pin_lists(board, run())
        content = json.loads(path.read_text())
        content["sets"].pop("snow")
        path.write_text(json.dumps(content))
        with pytest.raises(DataError, match="see 'snow'"):
            verify(folder)

    def test_one_refused_entry_does_not_hide_the_others(self, board):
        enter(board, "good")
        edit(enter(board, "bad"), lambda content: content.update(id="worse"))
        found = verify_each(board)
        assert [each.entry.id for each in found.board.standings] == ["good"]
        assert list(found.refused) == ["bad"]
        with pytest.raises(DataError, match="such as bad"):
            verify_all(board)


class TestSuspicions:
    def flags(self, board, change):
        folder = enter(board)
        entry = read_entry(folder)
        table = read_scores(folder, entry)
        spoiled = type(table)(change(table.frame), table.context)
        from oodscope.leaderboard.verify.examining import judge

        return list(suspicions(entry, spoiled, judge(spoiled, entry.protocols)))

    def test_a_clean_entry_has_none(self, board):
        assert self.flags(board, lambda frame: frame) == []

    def test_ties(self, board):
        flags = self.flags(
            board, lambda frame: frame.assign(knn=np.where(frame["knn"] > frame["knn"].quantile(0.9), 1.0, 0.0))
        )
        assert sum(flag.startswith("unreliable:") and "are ties" in flag for flag in flags) == 3

    def test_tied_pairs_by_brute_force(self):
        rng = np.random.default_rng(0)
        known, foreign = (rng.integers(0, 7, size=n).astype(float) for n in (31, 23))
        expected = np.mean([[a == b for a in known] for b in foreign])
        assert tied_pairs(known, foreign) == pytest.approx(expected)

    def test_a_turned_sign(self, board):
        def turned(frame):
            known = frame["role"].isin(["id_test"])
            return frame.assign(knn=frame["knn"] + np.where(known, 10.0, -10.0))

        assert any("sign of the score turned" in flag for flag in self.flags(board, turned))

    def test_one_set_below_one_half_is_no_turned_sign(self, board):
        def spread(frame):
            moves = {"rain": -10.0, "static": 10.0, "snow": 10.0}
            return frame.assign(knn=frame["knn"] + frame["set"].astype(str).map(moves).fillna(0.0).to_numpy())

        assert not any("sign" in flag for flag in self.flags(board, spread))

    @pytest.mark.parametrize(
        ("words", "normalise"),
        [
            ("mean 0 and spread 1", lambda values: (values - values.mean()) / values.std(ddof=0)),
            ("reach from 0 to 1", lambda values: (values - values.min()) / (values.max() - values.min())),
        ],
    )
    def test_scores_normalised_over_each_set(self, board, words, normalise):
        def spoiled(frame):
            return frame.assign(knn=frame.groupby("set", observed=True)["knn"].transform(normalise))

        flags = self.flags(board, spoiled)
        assert any(flag.startswith("transductive suspicion:") and words in flag for flag in flags)

    def test_ranks_among_all_test_images(self, board):
        flags = self.flags(board, lambda frame: frame.assign(knn=frame["knn"].rank(method="first")))
        judged = [flag for flag in flags if flag.startswith("transductive suspicion:")]
        # csid images take ranks of their own here, so that those of the judged sets have gaps
        assert judged == [] or "equally spaced" in judged[0]
        only = self.flags(board.parent / "second", lambda frame: _ranked_without_csid(frame))
        assert any("equally spaced" in flag for flag in only)

    def test_exposure_is_told(self, board):
        folder = edit(enter(board), lambda c: c["benchmark"]["sets"]["snow"].update(exposure="seen_in_training"))
        assert "exposure: snow: seen_in_training" in verify(folder).flags
        assert all("snow: seen_in_training" in row.exposure for row in verify(folder).measurements.filter(set="snow"))


def _ranked_without_csid(frame):
    judged = frame["role"].isin(["id_test", "near", "far"])
    ranks = frame.loc[judged, "knn"].rank(method="first").reindex(frame.index)
    return frame.assign(knn=ranks.fillna(0.5))


class Batchwise(Detector):
    """Looks at a batch as a whole: its scores are standardised among themselves."""

    name = "batchwise"
    paper = Paper("None", "Nobody", "Nowhere")
    needs = Needs.LOGITS
    cost = Cost.LOGITS

    def _score(self, batch: Activations) -> torch.Tensor:
        raw = -batch.logits.amax(dim=1)
        return raw - raw.mean()


class Careless(Detector):
    """Never says the same twice."""

    name = "careless"
    paper = Paper("None", "Nobody", "Nowhere")
    needs = Needs.LOGITS
    cost = Cost.LOGITS

    def _score(self, batch: Activations) -> torch.Tensor:
        return torch.rand(len(batch))


class Taught(Detector):
    """Learns from validation outliers where it is given some."""

    name = "taught"
    paper = Paper("None", "Nobody", "Nowhere")
    needs = Needs.LOGITS | Needs.HELD_OUT
    cost = Cost.LOGITS

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        self.centre_ = (val if ood_val is None else ood_val).logits.mean(dim=0)

    def _score(self, batch: Activations) -> torch.Tensor:
        return -(batch.logits - self.centre_).norm(dim=1)


class TestRerun:
    @pytest.mark.parametrize("detector", ["msp", "knn", "react+msp", "klm", "vim"])
    def test_detectors_of_the_registry_come_out_equal(self, board, detector):
        folder = enter(board, detector.replace("+", "-"), detector)
        receipt = executed(folder)
        assert receipt.verdict == "re-executed"
        assert max(receipt.in_order, receipt.shuffled, receipt.one_by_one) < TOLERANCE and receipt.repeated == 0.0
        assert verify(folder).tier == "re-executed"

    def test_with_training_scores_and_tuned_parameters(self, board):
        assert executed(enter(board, "whole", protocols=ALL)).verdict == "re-executed"
        assert executed(enter(board, "tuned", tune="ood_val")).verdict == "re-executed"

    def test_a_detector_that_learned_from_validation_outliers_sees_them_again(self, board, tmp_path):
        folder = self.with_detector(board, Taught, tmp_path, tune="ood_val")
        assert read_entry(folder).detector.fit_split == "id_val"
        assert executed(folder, detector=f"python:{__name__}:Taught").verdict == "re-executed"
        edit(folder, lambda content: content["detector"]["search"].update(tuning="default"))
        assert executed(folder, detector=f"python:{__name__}:Taught").verdict == "different"

    def with_detector(self, board, cls, tmp_path, **options):
        result = oods.evaluate(classifier(), benchmark(), [cls()], "standard", **options)
        folder = submit(result.save(tmp_path / "run"), board, id=cls.name, method=cls.name)
        assert verify(folder).tier == "recomputed"
        return folder

    def test_a_detector_that_looks_at_the_batch_is_found_out(self, board, tmp_path):
        folder = self.with_detector(board, Batchwise, tmp_path)
        receipt = executed(folder, detector=f"python:{__name__}:Batchwise")
        assert receipt.verdict == "transductive" and receipt.in_order < TOLERANCE
        assert min(receipt.shuffled, receipt.one_by_one) > TOLERANCE
        standing = verify(folder)
        assert (standing.track, standing.tier) == ("transductive", "re-executed")
        assert verify_all(board).tables("tiny@1", "standard") == [("transductive", "by hand")]

    def test_a_random_detector_is_found_out(self, board, tmp_path):
        folder = self.with_detector(board, Careless, tmp_path)
        assert executed(folder, detector=f"python:{__name__}:Careless").verdict == "random"
        standing = verify(folder)
        assert (standing.tier, standing.track) == ("recomputed", "post-hoc")
        assert "unreliable: scores change from run to run" in standing.flags

    def test_other_scores_than_the_detectors_are_found_out(self, board):
        folder = enter(board, "msp", "msp")
        edit(folder, lambda content: content["detector"].update(name="ebo", params={}))
        receipt = executed(folder)
        assert receipt.verdict == "different"
        assert "unreliable: the detector, run again, gives other scores" in verify(folder).flags
        assert verify(folder).tier == "recomputed"

    def test_verdicts(self):
        low, high = TOLERANCE / 2, TOLERANCE * 2
        assert verdict_of(low, low, low, low) == "re-executed"
        assert verdict_of(high, low, low, low) == "different"
        assert verdict_of(low, low, high, low) == verdict_of(high, low, low, high) == "transductive"
        assert verdict_of(low, high, high, high) == "random"

    def test_nothing_is_imported_because_an_entry_says_so(self, board, tmp_path, monkeypatch):
        (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
        monkeypatch.syspath_prepend(str(tmp_path))
        folder = enter(board)
        for name in ("python:evil:Thing", "evil:Thing", "evil.Thing"):
            edit(folder, lambda content, name=name: content["detector"].update(name=name))
            with pytest.raises(OodscopeError):
                rerun(folder, activations())
        nested = {"logit_score": {"detector": "python:evil:Thing", "params": {}}}
        edit(folder, lambda content: content["detector"].update(name="react", params=nested))
        with pytest.raises(OodscopeError, match="unknown detector"):
            rerun(folder, activations())

    @pytest.mark.parametrize("named", ["os:system", "python:os:system", "python:no_such_module:X", "python:json"])
    def test_only_detectors_can_be_named(self, board, named):
        with pytest.raises(DetectorError):
            rerun(enter(board), activations(), detector=named)

    def test_other_networks_and_benchmarks_are_refused(self, board):
        folder = enter(board)
        with pytest.raises(DataError, match="weights hash differs"):
            rerun(folder, activations(1))
        edit(folder, lambda content: content["benchmark"].update(version="2"))
        with pytest.raises(DataError, match="tiny@2"):
            rerun(folder, activations())

    def test_a_detector_of_another_version_or_with_probes_is_not_run(self, board, tmp_path):
        folder = edit(enter(board), lambda content: content["detector"].update(version=7))
        with pytest.raises(DetectorError, match="version 7"):
            rerun(folder, activations())
        edit(folder, lambda content: content["detector"].update(name="odin", params={}, version=1))
        with pytest.raises(DetectorError, match="published activations hold logits and features"):
            rerun(folder, activations())

    def test_a_fit_on_other_rows_is_not_repeated(self, board):
        folder = edit(enter(board), lambda content: content["detector"].update(fit_rows=100))
        with pytest.raises(DetectorError, match="fitted on 100 images"):
            rerun(folder, activations())

    def test_receipts_pile_up_and_the_last_counts(self, board):
        folder = enter(board)
        good = executed(folder)
        write_receipt(board, good.model_copy(update={"verdict": "different"}))
        assert [path.name for path in sorted((board / "receipts").iterdir())] == [
            "knn-tiny@001.json",
            "knn-tiny@002.json",
        ]
        assert verify(folder).tier == "recomputed"
        write_receipt(board, good)
        assert verify(folder).tier == "re-executed"


class TestPublished:
    def test_what_was_extracted_comes_back(self):
        published = PublishedActivations(activations())
        clf, bench = classifier(), benchmark()
        direct = oods.ActivationStore().extract(clf, bench.near[0])
        read = published.activations("static")
        for column in ("logits", "features", "prediction"):
            assert torch.equal(read[column], torch.as_tensor(direct[column]))
        assert read.head is not None and torch.equal(read.head.weight, clf.head.weight)
        assert published.images("static")["sample_id"].tolist() == bench.near[0].sample_ids()
        assert published.sets("near") == ["static", "snow"]

    def spoiled(self, tmp_path):
        return shutil.copytree(activations(), tmp_path / "spoiled")

    def test_parts_are_put_together(self, tmp_path, monkeypatch):
        from oodscope.activations.store import published as module
        from oodscope.leaderboard.verify.publishing import publish_activations

        monkeypatch.setattr(module, "ROWS", 7)
        folder = publish_activations(classifier(), benchmark(), tmp_path / "parts")
        one, many = PublishedActivations(activations()), PublishedActivations(folder)
        assert len(many.manifest.sets["rain"].parts) == 5
        assert torch.equal(one.activations("rain").features, many.activations("rain").features)
        with pytest.raises(StorageError, match="never change"):
            publish_activations(classifier(), benchmark(), tmp_path / "parts")

    def test_changed_missing_and_linked_files_are_refused(self, tmp_path):
        folder = self.spoiled(tmp_path)
        name = PublishedActivations(folder).manifest.sets["rain"].parts[0].file
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-1] + b"\x01")
        with pytest.raises(ActivationError, match="checksum differs"):
            PublishedActivations(folder).activations("rain")
        (folder / name).unlink()
        with pytest.raises(ActivationError, match="no such plain file"):
            PublishedActivations(folder).activations("rain")
        (tmp_path / "outside").write_bytes(content)
        (folder / name).symlink_to(tmp_path / "outside")
        with pytest.raises(ActivationError, match="no such plain file"):
            PublishedActivations(folder).activations("rain")

    @pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/x.parquet", "a/b.safetensors", "x.pkl", ""])
    def test_a_manifest_names_plain_files_only(self, tmp_path, name):
        folder = self.spoiled(tmp_path)
        content = json.loads((folder / "manifest.json").read_text())
        content["sets"]["rain"]["parts"][0]["file"] = name
        (folder / "manifest.json").write_text(json.dumps(content))
        with pytest.raises(OodscopeError, match="file"):
            PublishedActivations(folder)


class TestErrata:
    def test_an_entry_gives_way_with_a_reason(self, board):
        enter(board, "first"), enter(board, "second")
        supersede(board, "first", "second", "wrong\x1b[2J split")
        found = verify_all(board)
        first, second = (next(s for s in found.standings if s.entry.id == name) for name in ("first", "second"))
        assert (first.superseded_by, first.reason) == ("second", "wrong[2J split")
        assert not first.ranked and not second.superseded_by
        assert [(e.old, e.new) for e in found.errata] == [("first", "second")]
        assert [row.standing.entry.id for row in found.rows("tiny@1", "standard", "post-hoc", "default")] == ["second"]
        assert len(found.method("KNN")) == 2
        assert verify(board / "first").superseded_by == "second"

    def test_what_cannot_be_superseded(self, board):
        for name in ("a", "b", "c"):
            enter(board, name)
        with pytest.raises(DataError, match="no entry 'x'"):
            supersede(board, "a", "x", "r")
        with pytest.raises(DataError, match="say why"):
            supersede(board, "a", "b", "  ")
        with pytest.raises(DataError, match="or is the same"):
            supersede(board, "a", "a", "r")
        supersede(board, "a", "b", "r")
        with pytest.raises(DataError, match="superseded already, by 'b'"):
            supersede(board, "a", "c", "r")
        supersede(board, "b", "c", "r")
        with pytest.raises(DataError, match="was superseded by it"):
            supersede(board, "c", "a", "r")
        assert len(verify_all(board).errata) == 2


class TestBoard:
    def test_ranks_come_from_paired_tests(self, board):
        """As one run of all detectors ranks them: the same tests of the same pairs, for want of classes by images."""
        names = {"msp": "msp", "knn": "knn", "vim": "vim", "react+msp": "react-msp", "klm": "klm"}
        for detector, id in names.items():
            executed(enter(board, id, detector))
        rows = verify_all(board).rows("tiny@1", "standard", "post-hoc", "default")
        ranked = Result.load(run()).measurements.filter(protocol="standard", metric="auroc", set="mean", group="near")
        expected = {names[row.detector]: (row.rank_low, row.rank_high) for row in ranked}
        found = {row.standing.entry.id: dict(_means(row))["near"].rank for row in rows}
        assert found == expected
        assert {row.ranked_by for row in rows} == {PAIRED}
        values = [dict(_means(row))["near"].value for row in rows]
        assert values == sorted(values, reverse=True)

    def test_without_scores_of_the_same_images_intervals_decide(self, board):
        for detector in ("msp", "knn"):
            executed(enter(board, detector, detector))
        found = replace(verify_all(board), placed={})
        assert {row.ranked_by for row in found.rows("tiny@1", "standard", "post-hoc", "default")} == {OVERLAP}

    def test_who_was_not_run_again_has_no_rank(self, board):
        for detector in ("msp", "knn", "vim"):
            folder = enter(board, detector, detector)
            if detector != "knn":
                executed(folder)
        rows = verify_all(board).rows("tiny@1", "standard", "post-hoc", "default")
        assert [row.standing.entry.id for row in rows][-1] == "knn"
        assert all(cell.rank is None for cell in rows[-1].cells.values()) and not rows[-1].ranked
        assert all(dict(_means(row))["near"].rank is not None for row in rows[:-1])

    def test_tracks_and_tuning_are_never_mixed(self, board):
        enter(board, "plain")
        enter(board, "trained", track="training")
        enter(board, "tuned", tune="ood_val")
        found = verify_all(board)
        tables = found.tables("tiny@1", "standard")
        assert tables == [("post-hoc", "default"), ("post-hoc", "ood_val"), ("training", "default")]
        shown = [[row.standing.entry.id for row in found.rows("tiny@1", "standard", *table)] for table in tables]
        assert shown == [["plain"], ["tuned"], ["trained"]]

    def test_three_seeds_are_retrained_and_two_are_not(self, board):
        for seed in range(3):
            folder = enter(board, f"msp-{seed}", detector="msp", seed=seed, group="msp-tiny")
            executed(folder, seed)
            if seed < 2:
                assert {each.tier for each in verify_all(board).standings} == {"re-executed"}
        found = verify_all(board)
        assert {each.tier for each in found.standings} == {"retrained"}
        (row,) = found.rows("tiny@1", "standard", "post-hoc", "default")
        cell = dict(_means(row))["near"]
        values = [s.measurements.filter(metric="auroc", set="mean", group="near")[0].value for s in found.standings]
        assert cell.value == pytest.approx(np.mean(values)) and cell.sd == pytest.approx(np.std(values, ddof=1))
        assert cell.low < cell.value < cell.high and len(row.standings) == 3
        # one network counted twice would make the spread look smaller
        executed(enter(board, "msp-again", detector="msp", seed=0, group="msp-tiny"))
        assert {each.tier for each in verify_all(board).standings} == {"re-executed"}

    def test_the_same_weights_thrice_are_not_three_seeds(self, board):
        for number in range(3):
            executed(enter(board, f"knn-{number}", group="knn-tiny"))
        found = verify_all(board)
        assert {each.tier for each in found.standings} == {"re-executed"}
        assert len(found.rows("tiny@1", "standard", "post-hoc", "default")) == 3

    def test_a_group_of_other_parameters_or_methods_is_none(self, board):
        for seed in range(3):
            executed(enter(board, f"knn-{seed}", seed=seed, group="g", method=f"KNN {seed}"), seed)
        assert {each.tier for each in verify_all(board).standings} == {"re-executed"}

    def test_unknown_names_suggest_the_nearest(self, board):
        enter(board)
        found = verify_all(board)
        assert found.benchmarks() == ["tiny@1"] and found.protocols("tiny@1") == ["standard"]
        with pytest.raises(OodscopeError, match="Did you mean 'tiny@1'"):
            found.protocols("tiny@2")
        with pytest.raises(OodscopeError, match="Did you mean 'KNN'"):
            found.method("KN")
        assert len(found.model("TinyNet")) == 1


def _means(row):
    return {(column.group, cell) for column, cell in row.cells.items() if column.name == "mean"}


@pytest.fixture(scope="module")
def attack(tmp_path_factory):
    """Two variations of outliers, sent against two detectors; gradients find that the search under color fell short."""
    fitted = fit_scorers(classifier(), benchmark(), ["msp", "knn"], store=store())
    bench = benchmark()
    varied = {name: create_variation(name, image_shape=(3, 8, 8)) for name in ("color", "linf")}
    images = bench.id_val, bench.id_test, bench.near[0]
    found = oods.attack(fitted, *images, varied, budget=60, chains=10, seed=1, white_box=True)
    return found, found.save(tmp_path_factory.mktemp("attack") / "run")


class TestAttack:
    def test_every_headline_number_is_verified_from_the_scores(self, attack, board):
        found, folder = attack
        standing = verify(submit(folder, board, id="attacked", method="KNN", detector="knn"))
        expected = found.result.measurements.filter(protocol="attack", detector="knn")
        assert {(m.group, m.metric): (m.value, m.low, m.high) for m in standing.measurements} == {
            (m.group, m.metric): (m.value, m.low, m.high) for m in expected
        }
        flags = [flag for each in found.searches if each.detector == "knn" for flag in each.flags]
        assert [
            f"unreliable: search under {s.variation}: {flag}"
            for s in found.searches
            if s.detector == "knn"
            for flag in s.flags
        ] == [flag for flag in standing.flags if flag.startswith("unreliable: search")]
        assert flags

    def test_the_search_is_recorded(self, attack, board):
        found, folder = attack
        told = read_entry(submit(folder, board, id="attacked", method="KNN", detector="knn")).attack
        by_name = {each.variation: each for each in told.searches}
        assert {each.budget for each in told.searches} == {60} and {each.chains for each in told.searches} == {10}
        assert by_name["color"].boundary == "reflect" and by_name["linf"].boundary == "the sampler's own"
        assert by_name["color"].mu_sigma_source == "scores of id_val and of the source images"
        assert [each["name"] for each in by_name["linf"].sampler["members"]] == ["zeroth_order", "square", "apgd"]
        searched = found.search("knn", "color")
        assert by_name["color"].parameters == searched.parameters
        medians = np.median(searched.found, axis=0)
        assert [middle for _, middle, _ in by_name["color"].found] == pytest.approx(medians.tolist())
        assert by_name["color"].energy["scores"] == searched.settings["energy"]["scores"]

    def test_several_search_seeds_are_verified_too(self, board, tmp_path):
        bench, varied = benchmark(), {"color": create_variation("color", image_shape=(3, 8, 8))}
        fitted = fit_scorers(classifier(), bench, ["msp"], store=store())
        images = bench.id_val, bench.id_test, bench.near[0]
        found = oods.attack(fitted, *images, varied, budget=8, chains=10, search_seeds=2)
        folder = submit(found.save(tmp_path / "run"), board, id="attacked", method="MSP", detector="msp")
        assert read_entry(folder).attack.search_seeds == 2
        expected = found.result.measurements.filter(protocol="attack", detector="msp")
        assert [(m.group, m.metric, m.value) for m in verify(folder).measurements] == [
            (m.group, m.metric, m.value) for m in expected
        ]
        for number, words in ((1, "'color, search 2', which no list covers"), (3, "no rows of unit 'color, search 3'")):
            edit(folder, lambda content, seeds=number: content["attack"].update(search_seeds=seeds))
            with pytest.raises(DataError, match=words):
                verify(folder)

    def test_lower_found_scores_than_the_claims_are_refused(self, attack, board):
        folder = submit(attack[1], board, id="attacked", method="KNN", detector="knn")
        edit(folder, lambda content: content["claims"][0].update(value=0.5))
        with pytest.raises(DataError, match="the entry claims auroc"):
            verify(folder)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda told: told.update(conditional=["warp"]), "'warp' is conditional, but was not searched"),
            (lambda told: told["searches"][0].update(variation="clean"), "none is called clean"),
            (lambda told: told["searches"].append(told["searches"][0]), "searched once"),
            (lambda told: told["searches"].pop(0), "which no list covers|was not searched"),
            (lambda told: told.update(outliers="rain"), "which no list covers"),
        ],
    )
    def test_a_search_that_does_not_fit_the_scores(self, attack, board, change, words):
        folder = submit(attack[1], board, id="attacked", method="KNN", detector="knn")
        edit(folder, lambda content: change(content["attack"]))
        with pytest.raises(DataError, match=words):
            verify(folder)

    def test_it_cannot_be_run_again_on_activations(self, attack, board):
        folder = submit(attack[1], board, id="attacked", method="KNN", detector="knn")
        edit(folder, lambda content: content["benchmark"].update(name="tiny", version="1"))
        with pytest.raises(DataError, match="entry of an attack"):
            rerun(folder, activations())
