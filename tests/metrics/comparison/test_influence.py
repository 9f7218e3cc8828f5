"""Contributions of units: they are DeLong's for images, Obuchowski's for classes, and right for any metric."""

import numpy as np
import pytest
from benchmarks.verdict_worlds import World

from oodscope.base.errors import DataError
from oodscope.metrics.catalog import METRICS
from oodscope.metrics.comparison.functionals import evaluate, weigh_sets
from oodscope.metrics.comparison.influence import (
    Estimates,
    Part,
    effective_classes,
    from_replicates,
    join_sets,
    noise_freedom,
    pairs_of,
    place_sets,
    refusal,
)
from oodscope.metrics.comparison.paired import paired_delong
from oodscope.metrics.metric import columns_of
from oodscope.metrics.ranking.clusters import sampling_noise
from oodscope.metrics.ranking.placements import place
from oodscope.metrics.ranking.ranking import Ranking


def two_sets(detectors=3, **changes):
    rng = np.random.default_rng(3)
    known, near, labels = World(**changes).table(rng, detectors)
    _, far, _ = World(**changes).table(rng, detectors)
    return known, {"near": near, "far": far + 1.0}, {"near": labels, "far": labels}


def test_images_as_units_are_delongs_test():
    known, ood, classes = two_sets()
    found = join_sets(list(place_sets(known, ood, classes, {}).values()))
    placed = [place(known[d], {name: scores[d] for name, scores in ood.items()}) for d in range(3)]
    assert found.values == pytest.approx([each.mean for each in placed])
    first, second, weights = pairs_of(3)
    for a, b, difference, error in zip(first, second, *found.contrasts(weights)[:2]):
        test = paired_delong(placed[a], placed[b])
        assert (difference, error) == pytest.approx((test.difference, test.error))


def test_classes_as_units_are_obuchowskis_where_classes_are_alike_in_size():
    known, ood, classes = two_sets()
    found = join_sets(list(place_sets(known, ood, classes, dict.fromkeys(ood, "sampled")).values()))
    assert found.values == pytest.approx(found.plain)
    placed = place(known[0], {name: scores[0] for name, scores in ood.items()})
    noise = sampling_noise(placed, ood_classes=classes)
    assert (found.noise(0).error, found.noise(0).freedom) == pytest.approx((noise.error, noise.freedom))
    assert [part.what for part in found.parts] == ["ID images", "classes of near", "classes of far"]


def test_a_dominant_class_weighs_no_more_than_the_others():
    rng = np.random.default_rng(0)
    world = World(classes=8, sizes="dominant")
    known, ood, labels = world.table(rng, 2)
    (found,) = place_sets(known, {"o": ood}, {"o": labels}, {"o": "sampled"}).values()
    by_class = [Ranking(known[1], ood[1][labels == c]).auroc for c in range(8)]
    assert found.values[1] == pytest.approx(np.mean(by_class))
    assert found.plain[1] == pytest.approx(Ranking(known[1], ood[1]).auroc)
    assert found.of_id.mean(axis=0) == pytest.approx(found.values)
    assert effective_classes(labels) < 8
    assert effective_classes(np.repeat(np.arange(7), 3)) == pytest.approx(7.0)


def test_classes_that_two_sets_share_are_one_unit():
    rng = np.random.default_rng(1)
    known, near, labels = World(classes=6).table(rng, 2)
    names = {"a": [f"class {c}" for c in range(6)], "b": [f"class {c + 3}" for c in range(6)]}
    sets = place_sets(known, {"a": near, "b": near}, {"a": labels, "b": labels}, dict.fromkeys("ab", "sampled"), names)
    shared = join_sets(list(sets.values()))
    assert [(part.what, part.units, part.freedom) for part in shared.parts[1:]] == [("classes of a and b", 9, 7.0)]
    numbered = place_sets(known, {"a": near, "b": near}, {"a": labels, "b": labels}, dict.fromkeys("ab", "sampled"))
    apart = join_sets(list(numbered.values()))
    assert [part.units for part in apart.parts[1:]] == [6, 6]
    # the same set twice is one set: wholly shared classes leave its own noise
    same = {"a": names["a"], "b": names["a"]}
    twice = place_sets(known, {"a": near, "b": near}, {"a": labels, "b": labels}, dict.fromkeys("ab", "sampled"), same)
    once = join_sets([sets["a"]])
    assert join_sets(list(twice.values())).noise(0).error == pytest.approx(once.noise(0).error)


def test_numbers_are_no_names_that_sets_could_share():
    rng = np.random.default_rng(1)
    known, near, labels = World(classes=6).table(rng, 2)
    names = {key: [str(c) for c in range(6)] for key in "ab"}
    sets = place_sets(known, {"a": near, "b": near}, {"a": labels, "b": labels}, dict.fromkeys("ab", "sampled"), names)
    assert len(join_sets(list(sets.values())).parts) == 3


def test_exhaustive_sets_add_the_noise_of_images():
    known, ood, classes = two_sets()
    found = join_sets(list(place_sets(known, ood, classes, {"near": "sampled", "far": "exhaustive"}).values()))
    assert [(part.what, part.units) for part in found.parts] == [
        ("ID images", 400),
        ("classes of near", 10),
        ("images of far", 200),
    ]


def test_weights_of_a_user_move_the_mean():
    known, ood, classes = two_sets()
    sets = list(place_sets(known, ood, classes, {}).values())
    mostly = join_sets(sets, weights=[3, 1])
    assert mostly.values == pytest.approx(0.75 * sets[0].values + 0.25 * sets[1].values)
    assert join_sets(sets, weights=[1, 0]).noise(0).error == pytest.approx(join_sets(sets[:1]).noise(0).error)
    for wrong in ([1], [0, 0], [1, -1]):
        with pytest.raises(DataError, match="weights of 2 sets"):
            join_sets(sets, weights=wrong)


def test_any_metric_has_units():
    known, ood, classes = two_sets()
    columns = {
        name: [columns_of(known[d], scores[d], ood_class=classes[name]) for d in range(3)]
        for name, scores in ood.items()
    }
    populations = dict.fromkeys(ood, "sampled")
    exact = place_sets(known, ood, classes, populations)
    found = weigh_sets(METRICS["auroc"], columns, populations)
    for name in ood:
        assert found[name].values == pytest.approx(exact[name].values)
        assert found[name].plain == pytest.approx(exact[name].plain)
        assert found[name].of_ood == pytest.approx(exact[name].of_ood), "an AUROC is linear in its OOD classes"
    _, _, weights = pairs_of(3)
    mine, other = (join_sets(list(sets.values())).contrasts(weights)[1] for sets in (found, exact))
    assert mine == pytest.approx(other, rel=0.1)
    fpr = weigh_sets(METRICS["fpr95_id_positive"], columns, populations)["near"]
    assert fpr.plain[0] == pytest.approx(Ranking(known[0], ood["near"][0]).fpr_at_tpr(0.95, positive="id"))


def test_the_fast_walk_is_the_weighted_functional():
    known, ood, classes = two_sets(classes=8, sizes="dominant")
    own = columns_of(np.round(known[0], 1), np.round(ood["near"][0], 1), ood_class=classes["near"])
    rng = np.random.default_rng(0)
    weights = rng.multinomial(own["score"].size, np.full(own["score"].size, 1 / own["score"].size), size=4).astype(
        float
    )
    for side in (own["is_ood"], ~own["is_ood"]):
        weights[:, side] *= side.sum() / weights[:, side].sum(axis=1, keepdims=True)
    for name in ("auroc", "aupr_in", "aupr_out", "tpr5_ood_positive"):
        slow = [METRICS[name].value(own, row) for row in weights]
        assert evaluate(METRICS[name], own, weights) == pytest.approx(slow, abs=1e-9), name


@pytest.mark.parametrize("name", ["aupr_out", "aupr_in", "fpr95_id_positive", "auroc"])
def test_a_class_that_holds_the_top_scores_can_be_left_out(name):
    """What rounding left of its weight was divided by itself: AUPR of CIFAR-10 came out beyond all numbers."""
    rng = np.random.default_rng(1)
    known, ood = rng.normal(size=300), np.r_[rng.normal(size=210), rng.normal(size=30) + 50.0]
    classes = np.r_[np.arange(210) % 7, np.full(30, 7)]
    columns = columns_of(known, ood, id_correct=np.ones(300, bool), ood_class=classes)
    units = weigh_sets(METRICS[name], {"o": [columns]}, {"o": "sampled"})["o"]
    assert np.abs(units.of_ood).max() < 20.0 and np.isfinite(units.of_id).all()
    # the rest weighs as much as the whole did, so that the prevalence stays
    weights = np.r_[np.ones(300), np.where(classes < 7, 240 / 210, 0.0)]
    left = METRICS[name].value(columns, weights)
    pseudo = 8 * units.values[0] - 7 * left
    assert units.of_ood[7, 0] == pytest.approx(pseudo, abs=1e-6)


def test_replicates_become_estimates():
    rng = np.random.default_rng(0)
    replicates = rng.normal(size=(800, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    found = from_replicates(np.array([1.0, 2.0, 3.0]), replicates)
    _, error, freedom = found.contrasts(pairs_of(3)[2])
    assert error[0] == pytest.approx(np.std(replicates[:, 0] - replicates[:, 1], ddof=1))
    assert freedom == pytest.approx(799.0), "as well known as the replicates allow"
    known_badly = from_replicates(np.array([1.0, 2.0, 3.0]), replicates, freedom=30.0)
    assert known_badly.contrasts(pairs_of(3)[2])[2] == pytest.approx(30.0)


def test_a_bootstrap_knows_the_noise_of_a_quantile_badly_and_that_of_a_mean_well():
    """FPR95 among 60 detectors gave three times the promised false tables: 12 % of a standard error is unknown."""
    rng = np.random.default_rng(0)
    draws = {
        "mean": lambda scores: scores.mean(axis=-1),
        "quantile": lambda scores: np.quantile(scores, 0.95, axis=-1, method="higher"),
    }
    scores = rng.normal(size=(800, 12))
    freedom = {}
    for name, statistic in draws.items():
        halves = []
        for _ in range(2):
            order = rng.permutation(800)
            half = [scores[order[part]] for part in (slice(0, 400), slice(400, 800))]
            drawn = [own[rng.integers(400, size=(200, 400))] for own in half]
            halves.append(tuple(statistic(np.moveaxis(each, 1, 2)) for each in drawn))
        freedom[name] = noise_freedom(halves, 1000)
    assert 8 < freedom["quantile"] < 45, "Hall & Martin: 11 for one detector, about 22 for the difference of two"
    assert freedom["mean"] > 100


def test_sets_that_allow_no_statement_about_classes_say_why():
    few = np.repeat(np.arange(4), 10)
    lopsided = np.repeat(np.arange(10), [500, *[5] * 9])
    assert refusal("o", few, "sampled") == "o has 4.0 effective classes; 5 are needed"
    assert refusal("o", lopsided, "sampled") == "o has 1.2 effective classes; 5 are needed"
    assert refusal("o", None, "sampled") == "o has no classes that could be drawn anew"
    assert refusal("o", few, "exhaustive") == refusal("o", None, "none") == ""
    with pytest.raises(DataError, match="one has no spread"):
        join_sets(list(place_sets(np.ones((1, 1)), {"o": np.ones((1, 3))}, {}, {}).values()))
    with pytest.raises(DataError, match="no weighted form"):
        weigh_sets(METRICS["accuracy"], {}, {})


def test_a_difference_without_noise_gets_the_least():
    flat = Estimates(np.array([1.0, 0.5]), (Part("classes", np.zeros((5, 2)), 4.0),), least=0.1)
    assert flat.contrasts(pairs_of(2)[2])[1].tolist() == [0.1]
