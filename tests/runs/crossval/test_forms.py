"""Features before and after the ReLU, disjoint halves, accuracies and classes: what a study has beside its metrics."""

import numpy as np
import pytest
import torch

import oodscope as oods
from oodscope.activations.activations import Activations
from oodscope.base.errors import DataError, DetectorError
from oodscope.detectors.methods.mds import MDS
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.runs.crossval.draws import Divisions, Draw, Pair
from oodscope.runs.crossval.engine import cross_validate
from oodscope.runs.crossval.fidelity import claims, selections
from oodscope.runs.crossval.frozen import FrozenEmbeddings
from oodscope.runs.crossval.plan import PAPER_DETECTORS, CrossValidationPlan, forms_of
from oodscope.runs.crossval.run import CrossValidation, CrossValidationTable
from oodscope.runs.crossval.study import study_metric
from oodscope.training.heads.recipe import HeadRecipe
from tests.runs.crossval.crossval_world import RecordingTrainer, known, pairs, strange
from tests.tiny import classifier

SMALL = {"folds": 3, "repetitions": 2, "hold_outs": 4}


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    """A study of two detectors in both forms, with a truth of other images."""
    plan = CrossValidationPlan(
        **SMALL, detectors=("mds", "ebo", {"knn": {"k": 3}}), pre_activation=("mds", "knn"), disjoint_truth=True
    )
    store = oods.ActivationStore(tmp_path_factory.mktemp("store"))
    trainer = FrozenEmbeddings(classifier(), HeadRecipe(epochs=2, hidden=16, oe_epochs=1), store=store, at_once=4)
    pair = Pair(known(count=120), strange(count=60))
    return cross_validate(plan, [pair], trainer, folder=tmp_path_factory.mktemp("forms"))


def test_the_preset_is_the_paper_and_gives_way():
    plan = CrossValidationPlan(preset="dcv-paper", hold_outs=20)
    assert (plan.folds, plan.repetitions, plan.hold_outs) == (5, 10, 20)
    assert [each.id for each in plan.make_detectors()] == [
        *PAPER_DETECTORS,
        "knn(pre_activation)",
        "mds(pre_activation)",
        "relation(pre_activation)",
    ]


def test_both_forms_stand_side_by_side(forms):
    assert forms.draws.detectors == ["mds", "ebo", "knn(k=3)", "mds(pre_activation)", "knn(k=3, pre_activation)"]
    assert forms_of(forms.draws.detectors) == {
        "pre_activation": ["mds(pre_activation)", "ebo", "knn(k=3, pre_activation)"],
        "features": ["mds", "ebo", "knn(k=3)"],
    }
    study = study_metric(forms.draws, "auroc")
    words = ["all 3", "without mds(pre_activation)", "all 3", "without mds"]
    assert [each.detectors for each in selections(study)] == words
    plain, before = (study.detectors.index(name) for name in ("mds", "mds(pre_activation)"))
    assert not np.allclose(study.estimate[plain], study.estimate[before])


def test_pre_activation_is_what_the_relu_reads():
    from oodscope.models.classifier.head import Head
    from oodscope.training.heads.trained import TrainedHead

    torch.manual_seed(0)
    head = TrainedHead(torch.randn(6, 5), torch.randn(6), Head(torch.randn(3, 6), torch.randn(3)), 1, None)
    found = head.activations(torch.randn(40, 5), torch.arange(40) % 3)
    assert (found["pre_activation"] < 0).any()
    assert torch.equal(found["pre_activation"].relu(), found.features)
    before = Activations(features=found["pre_activation"], labels=found.labels, logits=found.logits)
    assert not torch.allclose(MDS().fit(before).score(before), MDS().fit(found).score(found))


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"detectors": ("fdbd",), "pre_activation": ("fdbd",)}, "reads the head, which does not read them"),
        ({"detectors": ("msp",), "pre_activation": ("msp",)}, "it reads no features"),
        ({"detectors": ("msp",), "pre_activation": ("mds",)}, "'mds', which is not among the detectors"),
    ],
)
def test_a_detector_of_the_head_keeps_its_features(plan, words):
    with pytest.raises(DetectorError, match=words):
        CrossValidationPlan(**plan).make_detectors()


def test_networks_without_such_features_are_refused_before_any_work(tmp_path):
    trainer = RecordingTrainer()
    plan = CrossValidationPlan(**SMALL, detectors=("mds",), pre_activation=("mds",))
    with pytest.raises(DetectorError, match="take the backbone 'frozen'"):
        cross_validate(plan, pairs(), trainer, folder=tmp_path)
    assert trainer.log == [] and not list(tmp_path.iterdir())


def test_the_truth_is_of_images_that_no_fold_has_seen():
    plan = CrossValidationPlan(**SMALL, disjoint_truth=True)
    pair = Pair(known(count=120), strange(count=60))
    divisions = Divisions(plan, [pair])

    def images(draw):
        fold = divisions.of(pair, draw)
        sides = (fold.id_train, fold.id_val, fold.id_test), (fold.ood_train, fold.ood_test)
        return [set(np.concatenate(side).tolist()) for side in sides]

    folds = [images(Draw("fold", repetition, fold)) for repetition in range(2) for fold in range(3)]
    rival, truth = images(Draw("hold_out", 0)), images(Draw("hold_out", 1))
    for side, total in ((0, 120), (1, 60)):
        assert all(each[side] == rival[side] for each in folds)
        assert not rival[side] & truth[side] and len(rival[side] | truth[side]) == total
    for rows in (divisions.of(pair, Draw("hold_out", number)).id_train for number in (0, 1)):
        assert set(pair.id_set.labels[rows]) == {0, 1, 2, 3}


def test_the_halves_of_an_id_set_do_not_depend_on_the_outliers():
    plan = CrossValidationPlan(**SMALL, disjoint_truth=True)
    two = [Pair(known(), strange()), Pair(known(), strange("fog", seed=5))]
    divisions = Divisions(plan, two)
    first, second = (divisions.of(pair, Draw("hold_out", 1)) for pair in two)
    np.testing.assert_array_equal(first.id_train, second.id_train)


def test_half_of_few_images_is_refused_in_words():
    with pytest.raises(DataError, match="half of the images is too little for a truth of its own"):
        Divisions(CrossValidationPlan(folds=3, disjoint_truth=True), [Pair(known(count=12), strange(count=6))])


def test_truth_and_rivals_are_told_apart_by_their_number(forms):
    study, whole = study_metric(forms.draws, "auroc"), forms.draws.hold_outs("auroc")
    assert study.disjoint
    np.testing.assert_array_equal(study.hold_outs, whole[[1, 3]])
    np.testing.assert_array_equal(study.rivals, whole[[0, 2]])


def test_accuracies_and_classes_are_those_of_the_stored_scores(forms):
    networks, classes = forms.draws.details.networks, forms.draws.details.classes
    for cell, scores in forms.cell_scores().items():
        for unit, frame in scores.frame.groupby("unit", observed=True):
            kind, repetition, fold = str(unit).rsplit("-", 2)
            test = frame[(frame["role"] == "id_test").to_numpy()]
            ood = frame[(frame["role"] == "near").to_numpy()]

            def own(rows, kind=kind, repetition=repetition, fold=fold, cell=cell):
                chosen = (rows["kind"] == kind) & (rows["repetition"] == int(repetition)) & (rows["fold"] == int(fold))
                return rows[(chosen & (rows["training"] == cell.training)).to_numpy()]

            (network,) = own(networks).itertuples()
            assert network.id_accuracy == pytest.approx((test["label"] == test["prediction"]).mean())
            rows = own(classes)
            for row in rows[(rows["detector"] == "ebo").to_numpy()].itertuples():
                of_class = ood[(ood["own_class"] == row.ood_class).to_numpy()]["ebo"].to_numpy()
                assert row.auroc == pytest.approx(Ranking(test["ebo"].to_numpy(), of_class).walk("ood").auroc())


def test_details_are_kept_and_joined(forms):
    again = CrossValidation.load(forms.folder).draws
    assert again.details.networks.equals(forms.draws.details.networks)
    study = study_metric(again, "auroc")
    assert study.class_counts == (6, 6)
    np.testing.assert_allclose(study.cross_validated[0, 0], study.class_values[0][:, 0].mean())
    low, high = study.class_intervals
    assert ((low <= study.cross_validated) & (study.cross_validated <= high)).all()
    kinds = again.frame["kind"].to_numpy()
    parts = [CrossValidationTable(again.frame[kinds == kind], again.metadata, again.details) for kind in set(kinds)]
    assert len(CrossValidationTable.concat(parts).details.networks) == 2 * len(again.details.networks)


def test_few_cells_say_what_they_can(forms):
    said = " / ".join(claims(forms.draws, study_metric(forms.draws, "auroc")))
    assert "ID accuracy of the plain networks: known" in said
    assert "hit rates compare tests over cells and need 8; what 2 can say" in said
    assert "for other OOD classes (of 6)" in said
    names = [sheet for sheet in forms.tables() if sheet in ("id-accuracy", "separations")]
    assert names == ["separations", "id-accuracy"]


def test_another_test_trains_nothing(tmp_path):
    plan = CrossValidationPlan(**SMALL, detectors=("msp", "ebo"))
    cross_validate(plan, pairs(), RecordingTrainer(), folder=tmp_path)
    trainer = RecordingTrainer()
    other = plan.model_copy(update={"test": "mannwhitney", "auto_parametric": True})
    done = cross_validate(other, pairs(), trainer, folder=tmp_path)
    assert trainer.log == []
    study = study_metric(done.draws, "auroc")
    assert (study.test, study.auto_parametric) == ("mannwhitney", True)


def test_the_estimate_counts_networks_and_images():
    """Of 2 x 3 folds and 4 hold-outs: a plain network per ID set, an exposed one per pair."""
    from oodscope.runs.crossval.estimate import estimate
    from oodscope.runs.crossval.trainer import Price

    class Priced(RecordingTrainer):
        embeds_once = True

        def price(self, images):
            return Price(1.0, 0.01, 30, 5, self.embeds_once)

    first, second = known(count=80), known("other", 60, 11)
    given = [Pair(first, strange(count=60)), Pair(second, strange(count=60))]
    plan = CrossValidationPlan(**SMALL, val_share=0.25)
    found = estimate(plan, given, Priced())
    assert found.networks == 10 * (2 + 2)
    # each set passes once; 140 ID images, of which half are trained on, 30 + 5 epochs each
    assert found.pass_seconds == pytest.approx(80 + 60 + 60)
    assert found.train_seconds == pytest.approx(10 * 0.5 * 140 * 35 * 0.01)
    assert "at most" in str(found) and "min" in str(found)
    whole = Priced()
    whole.embeds_once = False
    assert estimate(plan, given, whole).pass_seconds == pytest.approx(10 * (2 * 140 + 2 * 120 / 3))


def test_prices_are_measured(tmp_path):
    trainer = FrozenEmbeddings(classifier(), HeadRecipe(hidden=8), store=oods.ActivationStore(tmp_path), at_once=2)
    price = trainer.price(known())
    assert 0 < price.per_pass < 1 and 0 < price.per_epoch < 1
    assert (price.epochs, price.exposed_epochs, price.embeds_once) == (30, 5, True)
