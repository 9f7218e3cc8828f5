"""Wilson, Student and class-clustered intervals against SciPy, literal formulas and leave-one-class-out."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm, t

from oodscope.base.errors import OodscopeError
from oodscope.metrics.interval import t_interval, wilson_interval
from oodscope.metrics.ranking.clusters import Noise, logit_interval, sampling_noise
from oodscope.metrics.ranking.delong import auroc_interval, mean_auroc_interval
from oodscope.metrics.ranking.placements import place, together
from oodscope.metrics.ranking.ranking import Ranking
from tests.examples import examples

scores = st.lists(st.integers(0, 9).map(float), min_size=2, max_size=25).map(np.array)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.8, 0.95]))
def test_wilson_is_scipys(counts, level):
    expected = binomtest(*counts).proportion_ci(level, method="wilson")
    found = wilson_interval(*counts, level)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert found.low <= counts[0] / counts[1] <= found.high
    assert (found.level, found.method) == (level, "wilson")


def test_students_interval_is_scipys():
    values = [0.91, 0.93, 0.90]
    low, high = t.interval(0.95, 2, loc=np.mean(values), scale=np.std(values, ddof=1) / np.sqrt(3))
    found = t_interval(values)
    assert (found.low, found.high, found.method) == (pytest.approx(low), pytest.approx(high), "t-3-runs")
    assert t_interval([0.5, 0.5]).low == t_interval([0.5, 0.5]).high == 0.5


def test_placements_of_the_hand_oracle():
    placed = place([0.1, 0.2, 0.3, 0.4], {"o": [0.25, 0.4, 0.9]})
    assert placed.mean == pytest.approx(9.5 / 12)
    np.testing.assert_allclose(placed.of_ood["o"], [2 / 4, 3.5 / 4, 1])
    np.testing.assert_allclose(placed.of_id, [1, 1, 2 / 3, 1.5 / 3])
    assert (placed.n_id, placed.n_ood) == (4, 3)


@examples(60)
@given(scores, st.lists(scores, min_size=1, max_size=3))
def test_clusters_of_one_image_are_delong(id_scores, ood):
    sets = {str(k): values for k, values in enumerate(ood)}
    rankings = [Ranking(id_scores, values) for values in ood]
    placed = place(id_scores, sets)
    assert placed.mean == pytest.approx(np.mean([r.auroc for r in rankings]))
    assert placed.of_id.mean() == pytest.approx(placed.mean)
    assume(all(0 < r.auroc < 1 for r in rankings))
    noise = sampling_noise(placed)
    single = sampling_noise(
        placed, id_classes=np.arange(id_scores.size), ood_classes={k: np.arange(v.size) for k, v in sets.items()}
    )
    assert single.error == pytest.approx(noise.error)
    interval = mean_auroc_interval(rankings)
    logit = [np.log(end / (1 - end)) for end in (interval.low, interval.high)]
    delong = (logit[1] - logit[0]) / 2 / norm.ppf(0.975) * placed.mean * (1 - placed.mean)
    assert noise.error == pytest.approx(delong, abs=1e-9)


def obuchowski(id_scores, id_classes, ood_scores, ood_classes):
    """The variance of the paper, literally, one cluster at a time."""
    wins = (ood_scores > id_scores[:, None]) + 0.5 * (ood_scores == id_scores[:, None])
    auroc, total = wins.mean(), 0.0
    for placements, classes in ((wins.mean(axis=1), id_classes), (wins.mean(axis=0), ood_classes)):
        names = sorted(set(classes.tolist()))
        squares = 0.0
        for name in names:
            members = [v for v, c in zip(placements, classes) if c == name]
            squares += (sum(members) - len(members) * auroc) ** 2
        total += len(names) / (len(names) - 1) * squares / len(placements) ** 2
    return total


def clustered(seed, classes=12, members=8, between=1.0):
    rng = np.random.default_rng(seed)
    ood_classes = np.repeat(np.arange(classes), members)
    ood = 1.5 + between * rng.normal(size=classes)[ood_classes] + rng.normal(size=ood_classes.size)
    id_classes = np.repeat(np.arange(6), 20)
    id_scores = 0.5 * rng.normal(size=6)[id_classes] + rng.normal(size=120)
    shuffled = rng.permutation(ood.size)
    return id_scores, id_classes, ood[shuffled], ood_classes[shuffled]


@pytest.mark.parametrize("seed", range(5))
def test_class_noise_is_obuchowskis(seed):
    id_scores, id_classes, ood, ood_classes = clustered(seed)
    noise = sampling_noise(place(id_scores, {"o": ood}), id_classes=id_classes, ood_classes={"o": ood_classes})
    assert noise.error**2 == pytest.approx(obuchowski(id_scores, id_classes, ood, ood_classes))


def test_class_noise_is_that_of_leaving_out_one_class_at_a_time():
    id_scores, _, ood, ood_classes = clustered(7, classes=40)
    names = np.unique(ood_classes)
    left = np.array([Ranking(id_scores, ood[ood_classes != name]).auroc for name in names])
    jackknife = (len(names) - 1) / len(names) * np.sum((left - left.mean()) ** 2)
    placed = place(id_scores, {"o": ood})
    whole = sampling_noise(placed, ood_classes={"o": ood_classes}).error ** 2
    of_id_images = placed.of_id.var(ddof=1) / placed.n_id
    assert whole - of_id_images == pytest.approx(jackknife, rel=0.05)


def test_class_intervals_hold_the_truth_where_image_intervals_do_not():
    """Classes shift as wholes; the truth is the AUROC over all classes there could be."""
    truth = norm.cdf(1.5 / np.sqrt(1 + 0.25 + 1 + 1))
    by_class = by_image = 0
    cases = 300
    for seed in range(cases):
        id_scores, id_classes, ood, ood_classes = clustered(1000 + seed)
        placed = place(id_scores, {"o": ood})
        noise = sampling_noise(placed, id_classes=id_classes, ood_classes={"o": ood_classes})
        low, high = logit_interval(placed.mean, noise)
        narrow = auroc_interval(Ranking(id_scores, ood))
        by_class += low <= truth <= high
        by_image += narrow.low <= truth <= narrow.high
    assert 0.9 < by_class / cases < 0.99
    assert by_image / cases < 0.8


def test_a_mean_takes_the_id_sample_once_and_the_classes_of_each_set():
    id_scores, id_classes, near, classes = clustered(1)
    far = near[::-1] + 1.0
    both = place(id_scores, {"near": near, "far": far})
    apart = together([place(id_scores, {"near": near}), place(id_scores, {"far": far})])
    np.testing.assert_allclose(apart.of_id, both.of_id)
    assert apart.mean == pytest.approx(both.mean)
    ood_classes = {"near": classes, "far": classes[::-1]}
    noise = sampling_noise(both, id_classes=id_classes, ood_classes=ood_classes)
    expected = obuchowski_of_mean(id_scores, id_classes, [near, far], [classes, classes[::-1]])
    assert noise.error**2 == pytest.approx(expected)
    low, high = logit_interval(both.mean, noise, 0.9)
    assert low < both.mean < high
    middle = (np.log(low / (1 - low)) + np.log(high / (1 - high))) / 2
    assert middle == pytest.approx(np.log(both.mean / (1 - both.mean)))


def obuchowski_of_mean(id_scores, id_classes, sets, classes):
    """Every cluster's residuals of the mean, summed and squared."""
    wins = [(ood > id_scores[:, None]) + 0.5 * (ood == id_scores[:, None]) for ood in sets]
    sides = [(np.mean([w.mean(axis=1) for w in wins], axis=0), id_classes, 1.0)]
    sides += [(w.mean(axis=0), c, 1 / len(sets)) for w, c in zip(wins, classes)]
    total = 0.0
    for placed, labels, weight in sides:
        sums = np.array([np.sum(placed[labels == name] - placed.mean()) for name in np.unique(labels)])
        total += weight**2 * sums.size / (sums.size - 1) * np.sum(sums**2) / placed.size**2
    return total


def test_degrees_of_freedom_lie_between_the_weakest_side_and_the_sum():
    id_scores, id_classes, ood, ood_classes = clustered(2)
    noise = sampling_noise(place(id_scores, {"o": ood}), id_classes=id_classes, ood_classes={"o": ood_classes})
    assert 5 <= noise.freedom <= 5 + 11
    assert sampling_noise(place([0.0, 0.0], {"o": [0.0, 0.0, 0.0]})).freedom == 1
    image = sampling_noise(place(id_scores, {"o": ood}))
    assert image.freedom > 95


def test_perfect_separation_has_no_spread_to_learn_from():
    assert logit_interval(1.0, Noise(0.0, 3.0)) is logit_interval(0.0, Noise(0.1, 3.0)) is None


def test_misuse_is_named():
    placed = place([0.0, 1.0], {"svhn": [0.5, 2.0]})
    for call, message in [
        (lambda: wilson_interval(3, 2), "3 of 2"),
        (lambda: wilson_interval(0, 0), "at least one trial"),
        (lambda: t_interval([0.5]), "at least 2 runs"),
        (lambda: t_interval([0.5, np.nan]), "NaN"),
        (lambda: t_interval([0.5, 0.6], 95), "it is 95"),
        (lambda: place([0.0], {}), "at least one OOD set"),
        (lambda: place([0.0, np.nan], {"svhn": [1.0]}), "ID scores: 1 of 2 are NaN"),
        (lambda: place([0.0], {"svhn": []}), "svhn scores are empty"),
        (lambda: together([placed, placed]), "each OOD set once"),
        (lambda: sampling_noise(place([0.0], {"svhn": [0.5, 2.0]})), "ID images: one image has no spread"),
        (lambda: sampling_noise(placed, ood_classes={"svhn": [1, 1]}), "images of svhn: one class has no spread"),
        (lambda: sampling_noise(placed, id_classes=[1]), "ID images: 2 images need as many class labels"),
    ]:
        with pytest.raises(OodscopeError, match=message):
            call()
