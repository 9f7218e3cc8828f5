"""One promise for a whole table: false verdicts, ranks, who may be best, and what a chosen detector is worth."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.verdict_worlds import World

from oodscope.base.errors import DataError
from oodscope.metrics.comparison.components import Components, class_components, needed, typical
from oodscope.metrics.comparison.influence import from_replicates, join_sets, place_sets
from oodscope.metrics.comparison.networks import (
    CANNOT_SAY,
    average_networks,
    compared_trainings,
    paired_by_seed,
    pooled_seed_spread,
)
from oodscope.metrics.comparison.selection import cross_fit, select
from oodscope.metrics.comparison.simultaneous import compare_pairs, may_be_best, rank_intervals, rank_ranges
from oodscope.metrics.ranking.placements import place


def estimates(world, rng, detectors, population="sampled", **options):
    known, ood, labels = world.table(rng, detectors, **options)
    return join_sets(list(place_sets(known, {"o": ood}, {"o": labels}, {"o": population}).values()))


@pytest.mark.slow
def test_equal_detectors_get_false_ranks_by_classes_as_often_as_promised_and_by_images_nearly_always():
    rng = np.random.default_rng(5)
    world, tables = World(classes=20, per_class=80, n_id=2000), 40
    false = {"images": 0, "classes": 0, "first": 0}
    for _ in range(tables):
        known, ood, labels = world.table(rng, 6)
        placed = [place(known[d], {"o": ood[d]}) for d in range(6)]
        false["images"] += any(each != (1, 6) for each in rank_ranges(placed))
        found = join_sets(list(place_sets(known, {"o": ood}, {"o": labels}, {"o": "sampled"}).values()))
        false["classes"] += any(each != (1, 6) for each in rank_intervals(found))
        false["first"] += not may_be_best(found).all()
    assert false["images"] > 0.7 * tables, "the fault of 0.1"
    assert false["classes"] <= 6 and false["first"] <= 0.35 * tables


def test_differences_that_are_large_are_found_and_keep_their_order():
    rng = np.random.default_rng(0)
    found = estimates(World(classes=30), rng, 4, shifts=[0.0, 0.0, 1.5, 3.0])
    assert rank_intervals(found) == [(3, 4), (3, 4), (2, 2), (1, 1)]
    assert rank_intervals(found, higher=False) == [(1, 2), (1, 2), (3, 3), (4, 4)]
    assert may_be_best(found).tolist() == [False, False, False, True]
    assert may_be_best(found, higher=False).tolist() == [True, True, False, False]
    table = compare_pairs(found)
    assert table.family == "max-T" and (table.p_adjusted >= table.p).all()
    assert ((table.low < table.difference) & (table.difference < table.high)).all()


def test_few_classes_fall_back_to_holm_with_their_own_degrees_of_freedom():
    rng = np.random.default_rng(0)
    false = 0
    for _ in range(40):
        found = estimates(World(classes=5, per_class=10, n_id=200), rng, 20)
        table = compare_pairs(found)
        assert table.family == "holm"
        false += table.p_adjusted.min() < 0.05
    assert false <= 6


def test_one_pair_is_students_test():
    rng = np.random.default_rng(0)
    found = estimates(World(), rng, 2)
    table = compare_pairs(found)
    assert table.p_adjusted.tolist() == table.p.tolist()
    assert may_be_best(found.take([0])).tolist() == [True]
    assert rank_intervals(found.take([0])) == [(1, 1)]
    with pytest.raises(DataError, match="at least one detector"):
        rank_intervals(found.take([]))


@pytest.mark.parametrize("detectors", [2, 8, 30])
def test_a_clear_difference_of_replicates_is_seen_among_many(detectors):
    """With 8 detectors a paired bootstrap of 1,000 replicates could never reject: its smallest p is 2/1001."""
    rng = np.random.default_rng(0)
    values = np.zeros(detectors)
    values[0] = 12.0
    found = from_replicates(values, rng.normal(size=(1000, detectors)))
    table = compare_pairs(found)
    clear = (table.first == 0) | (table.second == 0)
    assert (table.p_adjusted[clear] < 0.01).all()
    assert table.p_adjusted[~clear].min(initial=1.0) > 0.05


@pytest.mark.slow
def test_noise_that_is_known_badly_counts_among_many_pairs():
    """The largest of many statistics is the one whose noise was found too small."""
    rng = np.random.default_rng(3)
    detectors, freedom, tables = 40, 10.0, 40
    false = {"taken as known": 0, "honest": 0}
    for seed in range(tables):
        values = rng.normal(size=detectors)
        scale = np.sqrt(rng.chisquare(freedom, size=detectors) / freedom)
        replicates = scale * rng.normal(size=(600, detectors))
        for name, known in (("taken as known", None), ("honest", 2.0 * freedom)):
            found = from_replicates(values, replicates, freedom=known)
            false[name] += compare_pairs(found, seed=seed, replicates=299).p_adjusted.min() < 0.05
    assert false["honest"] <= 6 and false["taken as known"] >= false["honest"] + 4


def test_detectors_that_rank_alike_are_never_apart():
    rng = np.random.default_rng(0)
    known, ood, labels = World(classes=12).table(rng, 1)
    twice = {"o": np.repeat(ood, 2, axis=0)}
    found = join_sets(list(place_sets(np.repeat(known, 2, axis=0), twice, {"o": labels}, {"o": "sampled"}).values()))
    assert compare_pairs(found).p.tolist() == [1.0]
    assert may_be_best(found).all()


@pytest.mark.slow
def test_the_value_of_the_chosen_detector_is_not_flattered():
    rng = np.random.default_rng(2)
    world = World(classes=30, per_class=15, n_id=600)
    truth = world.auroc()
    found = [select(estimates(world, rng, 46)) for _ in range(20)]
    assert np.mean([each.apparent for each in found]) - truth > 0.015, "the winner's curse"
    assert abs(np.mean([each.value for each in found]) - truth) < 0.012
    assert sum(each.low <= truth <= each.high for each in found) >= 16
    assert all(each.candidates[each.leader] for each in found)


def test_a_clear_winner_keeps_its_value():
    rng = np.random.default_rng(0)
    found = estimates(World(classes=40), rng, 5, shifts=[0, 0, 0, 0, 4])
    value, chosen = cross_fit(found)
    assert value == pytest.approx(found.values[4], abs=2e-3) and set(chosen.tolist()) == {4}
    assert cross_fit(found, higher=False)[0] > found.values.min()
    assert select(found).leader == 4 and select(found).candidates.sum() == 1


def networks(rng, seeds, sd, detectors=2, world=None, shift=0.0):
    """Networks that share classes and images; each moves every detector by a luck of its own."""
    world = world or World(classes=20)
    effects = world.effects(rng, 1, detectors)
    found = []
    for _ in range(seeds):
        luck = sd * rng.normal(size=detectors) + np.r_[shift, np.zeros(detectors - 1)]
        known, ood, labels = world.table(rng, detectors, shifts=luck, effects=effects)
        found.append(list(place_sets(known, {"o": ood}, {"o": labels}, {"o": "sampled"}).values()))
    return found


@pytest.mark.slow
def test_seeds_of_trainings_count_and_one_seed_cannot_say():
    rng = np.random.default_rng(1)
    wrong = {"classes": 0, "pooled": 0, "paired": 0}
    tables, methods = 150, 8
    for _ in range(tables):
        # own_spread 0: methods differ by the luck of their seeds alone
        seeds = networks(rng, 3, 0.3, detectors=methods, world=World(classes=15, own_spread=0.05))
        whole = paired_by_seed(seeds)
        by_seed = np.stack([join_sets(each).values for each in seeds])
        averaged = join_sets(average_networks(seeds))
        pair = [0, 1]
        wrong["classes"] += compare_pairs(averaged.take(pair)).p[0] < 0.05
        wrong["paired"] += compare_pairs(whole.take(pair)).p[0] < 0.05
        pooled = compared_trainings(averaged, list(by_seed.T))
        wrong["pooled"] += compare_pairs(pooled.take(pair)).p[0] < 0.05
    assert wrong["classes"] > 0.15 * tables
    assert wrong["pooled"] <= 0.09 * tables and wrong["paired"] <= 0.09 * tables


def test_one_seed_cannot_say():
    rng = np.random.default_rng(0)
    (only,) = networks(rng, 1, 0.1)
    for call in (
        lambda: paired_by_seed([only]),
        lambda: pooled_seed_spread([np.array([0.9]), np.array([0.8])]),
        lambda: compared_trainings(join_sets(only), [np.array([0.9]), np.array([0.8, 0.7])]),
    ):
        with pytest.raises(DataError, match=CANNOT_SAY):
            call()
    with pytest.raises(DataError, match="same images"):
        paired_by_seed([only, networks(rng, 1, 0.1, detectors=3)[0]])
    assert pooled_seed_spread([np.array([1.0, 3.0]), np.array([0.0, 2.0]), np.array([7.0])]) == (2**0.5, 2.0)


def test_components_are_found_again():
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(400), 30)
    of_ood = (0.2 * rng.normal(size=400))[classes] + 0.5 * rng.normal(size=classes.size)
    found = class_components(0.3 * rng.normal(size=9000), of_ood, classes, by_seed=np.array([0.1, 0.3]))
    assert (found.ood_class, found.ood_image, found.id_image) == pytest.approx((0.2, 0.5, 0.3), rel=0.1)
    assert found.seed == pytest.approx(0.2 / 2**0.5)
    none = class_components(np.zeros(10), 0.5 * rng.normal(size=classes.size), classes)
    assert none.ood_class < 0.03 and np.isnan(none.seed)
    with pytest.raises(DataError, match="two classes"):
        class_components(np.zeros(10), np.zeros(3), np.array([0, 0, 0]))


def test_power_and_what_is_needed_for_it():
    plain = Components(id_image=0.2, ood_image=0.2, ood_class=0.05, classes=100, images=90, id_images=9000)
    assert plain.error() == pytest.approx((0.04 / 9000 + (0.0025 + 0.04 / 90) / 100) ** 0.5)
    assert plain.power(0.0) == pytest.approx(0.05, abs=1e-6)
    assert plain.power(2.85 * plain.error()) == pytest.approx(0.8, abs=0.02)
    count = needed(plain, "classes", 0.01)
    assert replace(plain, classes=count).power(0.01) >= 0.8 > replace(plain, classes=count - 1).power(0.01)
    assert needed(replace(plain, classes=5), "images", 0.01) is None, "images do not make up for few classes"
    assert typical([plain, plain]) == plain or np.isnan(typical([plain]).seed)
    for call in (lambda: needed(plain, "cats", 0.1), lambda: needed(plain, "classes", 0.0), lambda: typical([])):
        with pytest.raises(DataError):
            call()
