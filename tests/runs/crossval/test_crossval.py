"""Cross-validation: what is trained, what is scored, what a kill costs, what is refused."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from oodscope.base.errors import DataError, DetectorError, OodscopeError, StorageError, UnknownNameError
from oodscope.data.folds.sets import FoldPlan, fold_sets
from oodscope.data.imageset import ImageSet
from oodscope.detectors.registry import create_detector
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.zoo.zoo import create_model
from oodscope.runs.crossval.draws import Draw, Pair
from oodscope.runs.crossval.engine import cross_validate
from oodscope.runs.crossval.frozen import FrozenEmbeddings
from oodscope.runs.crossval.networks import FineTuning, FullTraining
from oodscope.runs.crossval.plan import PAPER_DETECTORS, CrossValidationPlan
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.heads.task import HeadTask
from oodscope.training.heads.training import train_heads
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.fine_tune import FineTune
from tests.runs.crossval.crossval_world import RecordingTrainer, known, pairs, strange
from tests.tiny import TRANSFORM, classifier, network

pytestmark = pytest.mark.slow

PLAN = CrossValidationPlan(folds=3, repetitions=1, hold_outs=2, detectors=("msp", "ebo"))
HEADS = HeadRecipe(hidden=12, epochs=3, patience=2, batch_size=32)


def run(folder, plan=PLAN, trainer=None, given=None, **options):
    trainer = trainer or RecordingTrainer()
    return cross_validate(plan, given or pairs(), trainer, folder=folder, **options)


# what is done


def test_a_cell_is_what_a_slow_reader_of_the_paper_computes(tmp_path):
    """One fold, by hand: the head trained alone, the detector fitted to it, AUROC by scikit-learn."""
    pair = Pair(known(), strange())
    plan = CrossValidationPlan(folds=3, repetitions=2, hold_outs=0, detectors=("ebo", "mds"), seed=7)
    frozen = FrozenEmbeddings(classifier(), HEADS, at_once=1)
    frame = cross_validate(plan, [pair], frozen, folder=tmp_path).draws.frame
    fold = fold_sets(pair.id_set, pair.ood_set, FoldPlan(folds=3, seed=7)).folds(1)[2]
    embed = {
        images.name: classifier().forward(classifier().prepare(images.pictures(np.arange(len(images))))).features
        for images in (pair.id_set, pair.ood_set)
    }
    labels = torch.from_numpy(pair.id_set.labels)
    seed = Draw("fold", 1, 2).seed(plan)
    (plain,) = train_heads(HEADS, embed["known"], labels, [HeadTask(fold.id_train, fold.id_val, seed)], 4, device="cpu")
    task = HeadTask(fold.id_train, fold.id_val, seed, fold.ood_train, plain)
    (exposed,) = train_heads(HEADS, embed["known"], labels, [task], 4, outliers=embed["strange"], device="cpu")
    for training, head in (("plain", plain), ("outlier_exposure", exposed)):
        parts = {
            role: head.activations(embed[name][rows], labels[rows] if name == "known" else None)
            for role, name, rows in (
                ("train", "known", fold.id_train),
                ("val", "known", fold.id_val),
                ("id", "known", fold.id_test),
                ("ood", "strange", fold.ood_test),
            )
        }
        for name in plan.detectors:
            fitted = create_detector(name).fit(parts["train"], parts["val"])
            scores = torch.cat([fitted.score(parts["id"]), fitted.score(parts["ood"])])
            truth = np.repeat([0, 1], [len(fold.id_test), len(fold.ood_test)])
            here = (frame["repetition"] == 1) & (frame["fold"] == 2) & (frame["training"] == training)
            cell = frame[here & (frame["detector"] == name)].set_index("metric")
            assert cell["value"]["auroc"] == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)
            threshold = np.quantile(fitted.score(parts["val"]).numpy(), 0.9)
            right = ((scores.numpy() > threshold) == truth).mean()
            assert cell["value"]["accuracy_at_90_id_kept"] == pytest.approx(right, abs=1e-12)
            assert (cell["n_id"]["auroc"], cell["n_ood"]["auroc"]) == (len(fold.id_test), len(fold.ood_test))


def test_every_draw_has_every_cell(tmp_path):
    table = run(tmp_path).draws
    assert len(table.cells) == 6
    assert table.folds("auroc").shape == (1, 3, 2, 6)
    assert table.hold_outs("auroc").shape == (2, 2, 6)
    assert not table.incomplete("fold")
    assert CrossValidationTable.load(tmp_path).frame.equals(table.frame)


def test_pairs_of_one_id_set_share_its_plain_networks(tmp_path):
    trainer = RecordingTrainer(at_once=2)
    run(tmp_path, trainer=trainer)
    trained = [(call[1], len(call[2])) for call in trainer.calls("train")]
    # five draws in twos, for each ID set
    assert sorted(trained) == sorted(
        [("known", 2), ("known", 2), ("known", 1), ("other", 2), ("other", 2), ("other", 1)]
    )
    assert len(trainer.calls("expose")) == 9
    # the ID test rows of a plain network are scored once for both of its pairs
    plain = [call for call in trainer.calls("score") if call[2] == "known"]
    assert len(plain) == 5 * 3 * (1 + 2)


def test_only_rows_of_the_draw_are_seen(tmp_path):
    trainer = RecordingTrainer(at_once=1)
    pair = Pair(known(), strange())
    run(tmp_path, trainer=trainer, given=[pair], plan=PLAN.model_copy(update={"hold_outs": 0}))
    folds = fold_sets(pair.id_set, pair.ood_set, FoldPlan(folds=3)).folds(0)
    scored = [(call[2], call[3]) for call in trainer.calls("score")]
    for number, fold in enumerate(folds):
        parts = [("known", fold.id_train), ("known", fold.id_val), ("known", fold.id_test), ("strange", fold.ood_test)]
        expected = [(name, tuple(rows)) for name, rows in parts]
        assert scored[8 * number : 8 * number + 8] == expected * 2
    (last,) = trainer.folds
    assert np.array_equal(last.outliers, folds[2].ood_train)
    assert not set(pair.ood_set.labels[last.outliers]) & set(pair.ood_set.labels[folds[2].ood_test])


def test_without_outlier_exposure_nothing_is_exposed(tmp_path):
    trainer = RecordingTrainer()
    table = run(tmp_path, PLAN.model_copy(update={"outlier_exposure": False}), trainer).draws
    assert {cell.training for cell in table.cells} == {"plain"}
    assert not trainer.calls("expose")


def test_every_draw_trains_with_a_seed_of_its_own(tmp_path):
    trainer = RecordingTrainer(at_once=9)
    run(tmp_path, trainer=trainer)
    seeds = trainer.calls("train")[0][2]
    assert len(set(seeds)) == len(seeds) == 5
    assert trainer.calls("train")[1][2] == seeds
    # each network is asked for its own draw: training, validation and test images, plain and for both pairs
    asked = [call[1] for call in trainer.calls("score") if call[2] == "known"]
    assert {seed: asked.count(seed) for seed in seeds} == dict.fromkeys(seeds, 9)


def test_the_crossed_design_crosses(tmp_path):
    plan = CrossValidationPlan(folds=3, repetitions=0, hold_outs=0, variance_design=(2, 2, 2), detectors=("msp",))
    trainer = RecordingTrainer(at_once=1)
    table = run(tmp_path, plan, trainer, [Pair(known(), strange())]).draws
    rows = table.crossed("auroc")
    assert len(rows) == 2 * 8
    assert len(rows[["id_draw", "ood_draw", "training_seed"]].drop_duplicates()) == 8
    scored = trainer.calls("score")
    tests = [scored[8 * number + 2 : 8 * number + 4] for number in range(8)]
    id_rows, ood_rows = zip(*[(test[0][3], test[1][3]) for test in tests])
    # order: id_draw, ood_draw, seed; each factor moves its own side only
    assert len(set(id_rows)) == 2 and id_rows[0] == id_rows[1] == id_rows[2] == id_rows[3] != id_rows[4]
    assert len(set(ood_rows)) == 2 and ood_rows[0] == ood_rows[1] == ood_rows[4] != ood_rows[2]
    assert len({call[1] for call in trainer.calls("score")}) == 2


def test_classes_that_do_not_occur_get_no_logit(tmp_path):
    whole = known()
    part = whole.take(np.flatnonzero(whole.labels != 1))
    plan = CrossValidationPlan(folds=3, repetitions=1, hold_outs=0, detectors=("klm",))
    trainer = FrozenEmbeddings(classifier(), HEADS)
    outcome = cross_validate(plan, [Pair(part, strange())], trainer, folder=tmp_path)
    assert outcome.draws.metadata["sets"]["known"] == {"images": 60, "classes": 3}


def test_strata_reach_every_fold(tmp_path):
    whole, outliers = known(), strange()
    labelled = ImageSet(whole.name, whole.source, whole.labels, whole.class_names, hierarchy={"group": ["x"] * 80})
    trainer = RecordingTrainer(at_once=1)
    plan = PLAN.model_copy(update={"hold_outs": 0, "outlier_exposure": False})
    run(tmp_path, plan, trainer, [Pair(labelled, outliers, level="group")])
    for call in trainer.calls("score"):
        if call[2] == "strange":
            assert set(outliers.hierarchy["group"][list(call[3])]) == {"low", "high"}


def test_a_stratum_that_misses_a_fold_is_noted_or_refused(tmp_path):
    """Two groups of three OOD classes each, and four folds of six classes."""
    whole = known()
    labelled = ImageSet(whole.name, whole.source, whole.labels, whole.class_names, hierarchy={"group": ["x"] * 80})
    pairs = [Pair(labelled, strange(), level="group")]
    plan = PLAN.model_copy(update={"folds": 4, "hold_outs": 0, "outlier_exposure": False})
    noted = run(tmp_path / "noted", plan, given=pairs).record.notes
    assert any("have fewer OOD classes than the 4 folds" in note for note in noted)
    trainer = RecordingTrainer()
    with pytest.raises(DataError, match="strata have fewer OOD classes than the 4 folds"):
        run(tmp_path / "strict", plan.model_copy(update={"strict": True}), trainer, pairs)
    assert trainer.log == []


# resuming


def test_a_finished_study_is_read_back(tmp_path):
    first, again = run(tmp_path), RecordingTrainer()
    second = run(tmp_path, trainer=again)
    assert second.draws.frame.equals(first.draws.frame)
    assert again.log == []


def test_lost_and_rotten_records_are_made_again(tmp_path):
    first = run(tmp_path)
    cells = sorted((tmp_path / "cells").iterdir())
    cells[0].unlink()
    cells[1].write_bytes(cells[1].read_bytes()[:-40])
    cells[2].write_bytes(cells[2].read_bytes().replace(b"0.", b"1.", 1))
    trainer = RecordingTrainer()
    assert run(tmp_path, trainer=trainer).draws.frame.equals(first.draws.frame)
    seeds = {call[1] for call in trainer.calls("score")}
    assert len(seeds) == len({path.name.rpartition("-")[0] for path in cells[:3]})


def test_a_record_of_another_plan_does_not_count(tmp_path):
    run(tmp_path / "first")
    other = PLAN.model_copy(update={"seed": 1})
    before = run(tmp_path / "second", other).draws.frame
    stray = next((tmp_path / "first" / "cells").iterdir())
    (tmp_path / "second" / "cells" / stray.name).write_bytes(stray.read_bytes())
    trainer = RecordingTrainer()
    assert run(tmp_path / "second", other, trainer).draws.frame.equals(before)
    assert trainer.calls("train")


def test_time_that_is_up_leaves_whole_draws(tmp_path):
    whole = run(tmp_path / "whole")
    part = run(tmp_path / "part", stop_after=0.0)
    assert part.unfinished == 9
    assert "stopped before 9 draws" in part.record.notes[-1]
    rest = run(tmp_path / "part")
    assert rest.unfinished == 0
    assert rest.draws.frame.equals(whole.draws.frame)


def test_another_plan_is_not_mixed_in(tmp_path):
    run(tmp_path)
    with pytest.raises(StorageError, match="holds another cross-validation: plan was"):
        run(tmp_path, PLAN.model_copy(update={"seed": 1}))
    with pytest.raises(StorageError, match="trainer was"):
        run(tmp_path, trainer=RecordingTrainer(at_once=3))
    (tmp_path / "plan.json").write_text("[]")
    with pytest.raises(StorageError, match="not the plan of a cross-validation"):
        run(tmp_path)


STUDY = """
import sys
from oodscope.runs.crossval.engine import cross_validate
from oodscope.runs.crossval.frozen import FrozenEmbeddings
from oodscope.runs.crossval.plan import CrossValidationPlan
from oodscope.training.heads.recipe import HeadRecipe
from tests.runs.crossval.crossval_world import pairs
from tests.tiny import classifier
import torch
torch.set_num_threads(1)
plan = CrossValidationPlan(folds=3, repetitions=2, hold_outs=3, detectors=("ebo", "mds", "klm"))
trainer = FrozenEmbeddings(classifier(), HeadRecipe(hidden=16, epochs=4, batch_size=16), at_once=4)
print("begins", flush=True)
cross_validate(plan, pairs(), trainer, folder=sys.argv[1])
"""


def test_killed_at_random_moments_it_ends_with_the_same_numbers(tmp_path):
    def start(folder):
        environment = {**os.environ, "OODSCOPE_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", textwrap.dedent(STUDY), str(folder)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(process):
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors

    chance, folder, met = random.Random(0), tmp_path / "killed", set()
    for _ in range(2):
        process = start(folder)
        process.stdout.readline()
        already = len(list(folder.glob("cells/*.json")))
        while process.poll() is None and len(list(folder.glob("cells/*.json"))) < already + chance.randint(1, 4):
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        met.add(len(list(folder.glob("cells/*.json"))))
    assert 0 < max(met) < 18 and len(met) > 1
    finish(start(folder))
    plan = CrossValidationPlan(folds=3, repetitions=2, hold_outs=3, detectors=("ebo", "mds", "klm"))
    trainer = FrozenEmbeddings(classifier(), HeadRecipe(hidden=16, epochs=4, batch_size=16), at_once=4)
    whole = cross_validate(plan, pairs(), trainer, folder=tmp_path / "whole").draws.frame
    assert CrossValidationTable.load(folder).frame.equals(whole)


# networks


def test_whole_networks_are_trained_per_fold(tmp_path):
    plan = CrossValidationPlan(folds=2, repetitions=1, hold_outs=0, detectors=("ebo", "mds"))
    recipe = CrossEntropy(epochs=1, batch_size=20, learning_rate=0.05, patience=1)

    def build(classes):
        return create_model("small_cnn", num_classes=classes).model

    trainer = FullTraining(build, recipe, TRANSFORM, name="small_cnn", device="cpu")
    outcome = cross_validate(plan, [Pair(known(count=40), strange(count=24, classes=4))], trainer, folder=tmp_path)
    assert outcome.draws.folds("auroc").shape == (1, 2, 2, 2)
    assert outcome.record.model == "small_cnn"
    values = outcome.draws.frame.query("metric == 'auroc'").set_index(["training", "fold", "detector"])["value"]
    assert (values["plain"] != values["outlier_exposure"]).any()


def test_a_pretrained_network_is_adapted_per_fold(tmp_path):
    start = classifier()
    before = {name: value.clone() for name, value in start.model.state_dict().items()}
    plan = CrossValidationPlan(folds=2, repetitions=1, hold_outs=0, detectors=("mds",), outlier_exposure=False)
    trainer = FineTuning(start, FineTune(epochs=1, batch_size=20, hidden=8))
    pair = Pair(known(count=40), strange(count=24, classes=4))
    first = cross_validate(plan, [pair], trainer, folder=tmp_path / "a").draws.frame
    assert all(torch.equal(value, before[name]) for name, value in start.model.state_dict().items())
    again = FineTuning(classifier(seed=0), FineTune(epochs=1, batch_size=20, hidden=8))
    assert cross_validate(plan, [pair], again, folder=tmp_path / "b").draws.frame.equals(first)


def test_fine_tuning_wants_pixels():
    with pytest.raises(OodscopeError, match="needs its preprocessing as transform=Preprocess"):
        FineTuning(Classifier(network(), lambda image: torch.zeros(3, 8, 8), device="cpu"))


# leaks


@pytest.mark.parametrize(
    ("history", "words"),
    [
        ({"trained_on": ["known"]}, "was trained on known"),
        ({"trained_on": ["fog"]}, "was trained on fog"),
        ({"trained_on": [known().take([3, 5, 9], "mine")]}, "was trained on 3 of the 80 images of known"),
        ({"trained_on": [known("known", 20, seed=99)]}, "4 classes of known, such as 'known0'"),
    ],
)
def test_a_network_that_has_seen_the_folds_is_refused(tmp_path, history, words):
    leaky = RecordingTrainer(classifier=classifier(**history))
    with pytest.raises(DataError, match=words):
        run(tmp_path / "refused", trainer=leaky)
    assert leaky.log == []
    outcome = run(tmp_path / "allowed", trainer=leaky, allow_leak=True)
    assert words in outcome.draws.metadata["leak"][0]
    assert outcome.record.notes[0].startswith("LEAK: ")
    assert words in json.loads((tmp_path / "allowed" / "run.json").read_text())["record"]["notes"][0]


def test_a_pretraining_that_knows_outliers_is_flagged_and_one_that_knows_id_refused(tmp_path):
    knowing = classifier(pretrained_on=["imagenet1k"])
    tiny = strange("tinyimagenet_val", seed=8)
    outcome = run(
        tmp_path / "a", trainer=RecordingTrainer(classifier=knowing), given=[Pair(known(), tiny), *pairs()[1:]]
    )
    assert outcome.draws.metadata["exposure"] == {"known/tinyimagenet_val": "tinyimagenet_val: pretraining:imagenet1k"}
    assert outcome.draws.metadata["leak"] == []
    with pytest.raises(DataError, match="knows the classes of tinyimagenet"):
        given = [Pair(known("tinyimagenet"), strange())]
        run(tmp_path / "b", trainer=RecordingTrainer(classifier=knowing), given=given)


def test_web_images_may_be_anything_and_numbers_name_no_class(tmp_path):
    numbered = known("numbers", seed=50)
    numbered = ImageSet(numbered.name, numbered.source, numbered.labels, [str(c) for c in range(4)])
    counted = ImageSet("known", known().source, known().labels, [str(c) for c in range(4)])
    network = classifier(trained_on=[numbered], pretrained_on=["laion"])
    outcome = run(tmp_path, trainer=RecordingTrainer(classifier=network), given=[Pair(counted, strange())])
    assert outcome.draws.metadata["leak"] == []
    assert "web images" in outcome.draws.metadata["exposure"]["known/strange"]


def test_a_training_set_that_nobody_knows_is_a_misspelling(tmp_path):
    with pytest.raises(UnknownNameError, match="Did you mean 'known'"):
        run(tmp_path, trainer=RecordingTrainer(classifier=classifier(trained_on=["knwon"])))


# errors


def one_class():
    whole = known()
    return whole.take(np.flatnonzero(whole.labels == 2))


def overlapping():
    rows = known().take([7, 8])
    pixels = np.concatenate([np.stack(rows.images([0, 1])), np.stack(strange().images(np.arange(60)))])
    return ImageSet.from_arrays("mixed", pixels, [0, 1, *strange().labels], strange().class_names)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: [Pair(known(), strange(classes=2, count=20))], "3 folds need 3 OOD classes"),
        (lambda: [Pair(one_class(), strange())], "one class only"),
        (lambda: [Pair(known(), overlapping())], "are ID images too"),
        (lambda: [Pair(known(), strange(), level="group")], "has no level 'group'"),
        (list, "no pair to cross-validate"),
        (lambda: [Pair(known(), strange()), Pair(known(), strange())], "named twice"),
        (
            lambda: [Pair(known(), strange()), Pair(known(seed=2), strange())],
            "two different sets are called 'known'",
        ),
        (lambda: [Pair(known(), ImageSet("bare", strange().source))], "have no class"),
    ],
)
def test_what_cannot_be_folded_is_said_before_anything_is_trained(tmp_path, given, words):
    trainer = RecordingTrainer()
    with pytest.raises(DataError, match=words):
        cross_validate(PLAN, given(), trainer, folder=tmp_path)
    assert trainer.log == []


def test_duplicates_may_be_dropped_and_are_counted(tmp_path):
    plan = PLAN.model_copy(update={"duplicates": "drop"})
    outcome = run(tmp_path, plan, given=[Pair(known(), overlapping())])
    assert "2 of 62 images of 'mixed' left out" in " ".join(outcome.record.notes)


def test_a_plan_without_draws_is_an_oversight(tmp_path):
    with pytest.raises(DataError, match="the plan draws nothing"):
        run(tmp_path, PLAN.model_copy(update={"repetitions": 0, "hold_outs": 0}))


def test_detectors_are_checked_first(tmp_path):
    with pytest.raises(UnknownNameError, match="Did you mean"):
        run(tmp_path, PLAN.model_copy(update={"detectors": ("mdss",)}))
    with pytest.raises(DetectorError, match="asked for twice"):
        run(tmp_path, PLAN.model_copy(update={"detectors": ("knn", {"knn": {}})}))
    with pytest.raises(DetectorError, match="more passes"):
        run(tmp_path, PLAN.model_copy(update={"detectors": ("odin",)}))


def test_relation_without_looking_says_the_same(monkeypatch):
    """What an accelerator computes: whole tiles, no rows picked out."""
    from oodscope.activations.activations import Activations
    from oodscope.detectors.methods import relation

    rng = np.random.default_rng(0)
    train, test = (
        Activations(logits=3 * rng.normal(size=(n, 5)), features=rng.normal(size=(n, 8))) for n in (2500, 90)
    )
    fitted = create_detector("relation").fit(train)
    looked = fitted.score(test)
    monkeypatch.setattr(relation, "on_host", lambda values: False)
    monkeypatch.setattr(relation, "BANK", 700)
    assert torch.allclose(fitted.score(test), looked, rtol=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_an_accelerator_finds_the_same(tmp_path):
    plan = CrossValidationPlan(
        folds=3,
        repetitions=1,
        hold_outs=1,
        detectors=({"knn": {"k": 5}}, *PAPER_DETECTORS[:4], "mds", "nnguide", "relation"),
    )
    tables = {
        device: cross_validate(
            plan, pairs(), FrozenEmbeddings(classifier(device=device), HEADS, at_once=3), folder=tmp_path / device
        ).draws
        for device in ("cpu", "cuda")
    }
    for metric in ("auroc", "aupr_in", "accuracy_at_90_id_kept"):
        assert np.abs(tables["cpu"].folds(metric) - tables["cuda"].folds(metric)).max() < 0.02
    assert tables["cpu"].metadata["detectors"] == tables["cuda"].metadata["detectors"]
