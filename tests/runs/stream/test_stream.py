"""Stream detectors keep to their mode, and schedules to their word."""

import numpy as np
import pytest
import torch

from oodscope.activations.activations import Activations
from oodscope.base.errors import DataError, DetectorError
from oodscope.detectors.streams.oodd import OODD
from oodscope.detectors.streams.running_prototypes import RunningPrototypes
from oodscope.metrics.stream import bursts, rolling_thresholds, window_auroc
from oodscope.runs.stream.schedule import Schedule, default_schedules


def rows(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    features = (rng.normal(size=(n, 6)) + 3 * np.eye(6)[labels] + shift).astype("f4")
    return Activations(features=features, logits=features[:, :3], labels=labels)


TRAIN, STREAM = rows(90, 0), rows(40, 1, shift=0.4)


def part(start, stop):
    return Activations(features=STREAM.features[start:stop], logits=STREAM.logits[start:stop])


def slow_oodd(train, stream, k1, k2, size):
    """From the definition, one image at a time, sorted lists and nothing else."""
    bank, seen, scores = [h / np.linalg.norm(h) for h in train], [], []
    for h in stream:
        h = h / np.linalg.norm(h)
        kappa = sorted((float(h @ b) for b in bank), reverse=True)[k1 - 1]
        cosines = sorted((float(h @ other) for _, _, other in seen), reverse=True)
        against = cosines[min(k2, len(cosines)) - 1] if cosines else 0.0
        scores.append(-(kappa - against))
        seen = sorted([*seen, (kappa, len(scores), h)], key=lambda each: each[:2])[:size]
    return np.array(scores)


def test_oodd_one_at_a_time_is_its_slow_twin():
    fast = OODD("causal", bank_fraction=1.0, queue=8, k1=4, k2=3).fit(TRAIN)
    slow = slow_oodd(TRAIN.features.double().numpy(), STREAM.features.double().numpy(), 4, 3, 8)
    np.testing.assert_allclose(fast.score(STREAM).numpy(), slow, atol=1e-6)


def test_the_bank_holds_the_most_confident_of_each_class():
    chosen = OODD(bank_fraction=0.2)._confident(TRAIN)
    confidence, labels = TRAIN.logits.softmax(dim=1).amax(dim=1), TRAIN.labels
    for each in range(3):
        inside = chosen & (labels == each)
        assert inside.sum() == 6 and confidence[inside].min() >= confidence[(labels == each) & ~chosen].max()
    with pytest.raises(DetectorError, match="bank_fraction"):
        OODD(bank_fraction=2).fit(TRAIN)


@pytest.mark.parametrize("cls", [OODD, RunningPrototypes])
def test_a_causal_score_depends_on_earlier_images_alone(cls):
    detector = cls("causal").fit(TRAIN)
    whole = detector.score(STREAM)
    detector.start()
    parts = torch.cat([detector.observe(part(a, b)) for a, b in ((0, 7), (7, 8), (8, 30), (30, 40))])
    torch.testing.assert_close(whole, parts, rtol=0, atol=1e-6)  # products of batches round differently
    detector.start()
    torch.testing.assert_close(detector.observe(part(0, 15)), whole[:15], rtol=0, atol=1e-6)  # whatever comes after


@pytest.mark.parametrize("cls", [OODD, RunningPrototypes])
def test_a_batch_score_depends_on_its_batch_and_a_start_forgets(cls):
    detector = cls("batch").fit(TRAIN)
    detector.start()
    first = detector.observe(STREAM)
    again = detector.observe(STREAM)
    assert not torch.equal(first, again)  # it remembers
    detector.start()
    assert torch.equal(first, detector.observe(STREAM))
    detector.start()
    assert not torch.equal(first[:20], detector.observe(part(0, 20)))


def test_wrong_modes_and_unfitted_detectors_are_refused():
    with pytest.raises(DetectorError, match="not fitted"):
        OODD().start()
    with pytest.raises(DetectorError, match="causal or batch"):
        OODD("later").fit(TRAIN).start()
    with pytest.raises(DetectorError, match="k1=200"):
        OODD(k1=200).fit(TRAIN)


@pytest.mark.parametrize("order", ["mixed", "bursts", "id_first", "ood_first"])
def test_schedules_keep_share_order_and_delay(order):
    schedule = Schedule(share=0.2, order=order, images=200, delay=20, burst=15)
    places = schedule.foreign(3)
    assert places.sum() == 40 and not places[:20].any() and len(places) == 200
    assert np.array_equal(places, schedule.foreign(3))
    if order == "mixed":
        assert not np.array_equal(places, schedule.foreign(4))
    if order == "id_first":
        assert places[-40:].all()
    if order == "ood_first":
        assert places[20:60].all()
    pools, drawn = schedule.draw(3, known=200, foreign=50)
    assert np.array_equal(pools == "ood", places)
    assert len(np.unique(drawn[~places])) == 160  # no image twice


def test_drift_and_what_does_not_fit():
    pools, _ = Schedule(share=0.1, images=400, drift=1.0).draw(0, 400, 40, 400)
    early, late = (pools[:200] == "csid").mean(), (pools[200:] == "csid").mean()
    assert early < 0.4 < late
    assert "drift to 100 %" in Schedule(drift=1.0).name
    for wrong in ({"share": 1.5}, {"order": "last"}, {"delay": 1000}, {"batch": 0}):
        with pytest.raises(DataError, match="a schedule"):
            Schedule(**wrong)
    with pytest.raises(DataError, match="do not fit behind a delay"):
        Schedule(share=0.5, images=100, delay=60).foreign(0)
    with pytest.raises(DataError, match="which has 10"):
        Schedule(images=100).draw(0, 100, 10)


def test_windows_take_out_a_score_that_only_tells_the_time():
    is_ood = np.arange(1000) >= 500
    clock = np.arange(1000.0)
    assert np.isnan(window_auroc(clock, is_ood)) and window_auroc(clock, is_ood, windows=1) == 1
    mixed = np.random.default_rng(0).random(1000) < np.linspace(0.1, 0.9, 1000)
    assert abs(window_auroc(clock, mixed, windows=100) - 0.5) < 0.1 < window_auroc(clock, mixed, 1) - 0.5
    slow = np.mean([(f > k) + 0.5 * (f == k) for k in clock[~mixed][:50] for f in clock[mixed][:50]])
    some = np.r_[np.flatnonzero(~mixed)[:50], np.flatnonzero(mixed)[:50]]
    assert window_auroc(clock[some], mixed[some], windows=1) == pytest.approx(slow)


def slow_rolling(held, scores, share, window):
    """One image at a time: of the scores before it, the smallest that at least the share lies at or below."""
    found = []
    for number in range(len(scores)):
        before = sorted([*held, *scores[:number]][-window:])
        place = next(i for i in range(window) if i >= (1 - share) * (window - 1) - 1e-12)
        found.append(before[place])
    return np.array(found)


@pytest.mark.parametrize("window", [1, 7, 20])
def test_a_rolling_threshold_knows_the_scores_before_it_alone(window):
    rng = np.random.default_rng(window)
    held, scores = rng.normal(size=30), rng.normal(size=50)
    fast = rolling_thresholds(held, scores, 0.1, window)
    np.testing.assert_array_equal(fast, slow_rolling(held, scores, 0.1, window))
    later = np.concatenate([scores[:25], scores[25:] + 100])
    np.testing.assert_array_equal(fast[:26], rolling_thresholds(held, later, 0.1, window)[:26])
    with pytest.raises(DataError, match="as many ID validation images, not 30"):
        rolling_thresholds(held, scores, 0.1, 31)


def test_bursts_are_waited_for_until_half_is_flagged():
    is_ood = np.array([0, 1, 1, 1, 1, 0, 1, 1, 1, 0], dtype=bool)
    flagged = np.array([1, 0, 1, 1, 0, 1, 0, 0, 1, 0], dtype=bool)
    first, second = bursts(is_ood, flagged)
    assert (first.images, first.until_half, first.waited) == (4, 3, 3)
    assert (second.images, second.until_half, second.waited) == (3, None, 3)
    assert bursts(np.zeros(4, bool), flagged[:4]) == []


def test_there_is_a_default_schedule_of_each_kind():
    made = default_schedules(600)
    assert len({each.name for each in made}) == 5
    assert {each.order for each in made} == {"mixed", "bursts", "id_first"} and any(each.drift for each in made)
