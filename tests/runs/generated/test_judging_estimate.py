"""How long judging takes is told before it starts, from what it then does."""

import contextlib
import math
import re

import numpy as np
import pytest

import oodscope as oods
from oodscope.data.preprocess import Preprocess
from oodscope.metrics.generated.frechet import Gaussian, frechet_distance
from oodscope.runs.generated import estimate as estimating
from oodscope.runs.generated.judging import fitting_batch, judge_generated
from oodscope.runs.generated.opinion import closeness
from tests.runs.generated import generated_world as world
from tests.tiny import network


class Noting:
    """Notes the description of every stage."""

    def __init__(self):
        self.stages = []

    @contextlib.contextmanager
    def stage(self, description, total):
        self.stages.append(description)
        yield lambda finished, remark=None: None


def test_the_images_that_are_counted_are_the_images_that_pass(tmp_path):
    bench, checks = world.world_benchmark(), world.checks()
    tested, store = [world.trained(5)], oods.ActivationStore(tmp_path)
    told = estimating.estimate(tested, bench, checks, store)
    assert len(told.networks) == 6 and all(seconds > 0 for _, _, seconds in told.networks)
    runs = [(each, oods.evaluate(each, bench, ["knn"], store=store)) for each in tested]
    progress = Noting()
    before = store.forwarded
    judge_generated(runs, bench, checks, store=store, progress=progress)
    # the tested network has seen every set; a judge's features of the training images are new
    assert store.forwarded - before == sum(count for _, count, _ in told.networks[1:])
    assert before <= told.networks[0][1]
    assert {count for _, count, _ in estimating.estimate(tested, bench, checks, store).networks[1:]} == {0}
    assert {re.sub(": extract .*", "", each) for each in progress.stages} == {"net0", "5 networks"}


def test_words():
    said = str(estimating.Estimate((("a", 1000, 30.0), ("lite", 2000, 270.0))))
    assert said == "about 5 min for 3,000 passes of an image through one of 2 networks (lite: 4 min)"


@pytest.mark.parametrize(("side", "batch"), [(32, 256), (128, 32), (224, 10), (4096, 1)])
def test_batches_fit_the_caches_of_a_processor(side, batch):
    made = oods.Classifier(network(0), Preprocess(size=side), device="cpu")
    assert fitting_batch(made, 256) == batch
    assert fitting_batch(oods.Classifier(network(0), None, device="cpu"), 256) == 256


def test_the_root_of_a_covariance_is_taken_once(monkeypatch):
    rng, taken = np.random.default_rng(0), []
    roots = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: taken.append(1) or roots(matrix))
    known, others = Gaussian.of(rng.normal(size=(40, 5))), [Gaussian.of(rng.normal(size=(30, 5))) for _ in range(4)]
    assert all(math.isfinite(frechet_distance(known, each)) for each in others)
    assert len(taken) == 5


def test_a_set_of_one_image_has_no_distance_and_leaves_those_of_others(tmp_path):
    bench, store = world.world_benchmark(), oods.ActivationStore(tmp_path)

    def extract(networks, images):
        return [store.extract(each.with_default_transform(bench.transform), images) for each in networks]

    sets = [bench.id_test, bench.id_val]
    alone = closeness(bench.id_train, sets, world.trained(0), extract, 0)
    beside = closeness(bench.id_train, [*sets, bench.near[0].take([0], "one")], world.trained(0), extract, 0)
    assert beside == alone and set(alone) == {"id_test", "id_val"}
