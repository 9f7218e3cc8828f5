"""Every detector agrees with a slow twin written from its paper."""

import numpy as np
import pytest

from oodscope.base.errors import DetectorError
from oodscope.detectors.registry import DETECTORS, create_detector
from tests.detectors.cases import NEEDS_RESIDUAL
from tests.detectors.twins import density, distances, first, language, logits, newer, probed, rectifiers
from tests.detectors.worlds import activations, world

FAMILIES = [first, logits, rectifiers, distances, probed, language, newer, density]
TWINS = {name: (getattr(family, name), cases) for family in FAMILIES for name, cases in family.CASES.items()}
"""Each detector with its twin and the parameters they are compared at."""

WORLDS = {
    "random": {},
    "tied": {"ties": True},
    "zero rows": {"zeros": True},
    "huge": {"scale": 1e3},
    "tiny": {"scale": 1e-3},
    "far from the origin": {"offset": 100.0},
    "two classes": {"classes": 2},
    "many classes": {"classes": 60, "n": 600},
}


def test_every_detector_has_a_twin():
    assert sorted(TWINS) == DETECTORS.names()


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow if kind == "many classes" else ()) for kind in WORLDS]
)
@pytest.mark.parametrize(("name", "params"), [(n, p) for n, (_, cases) in TWINS.items() for p in cases])
def test_agrees_with_its_twin(name, params, kind):
    train, val, test = world(**WORLDS[kind])
    detector = create_detector(name, **params)
    if name in NEEDS_RESIDUAL and train["weight"].shape[0] >= train["weight"].shape[1]:
        with pytest.raises(DetectorError, match="leaves no residual"):
            detector.fit(activations(train), activations(val))
        return
    detector.fit(activations(train, detector.probes), activations(val, detector.probes))
    ours = detector.score(activations(test, detector.probes)).numpy()
    theirs = TWINS[name][0](train, test, **params)
    tolerance = 1e-4 * np.maximum(np.abs(theirs), theirs.std())
    assert np.all(np.abs(ours - theirs) <= tolerance), np.abs(ours - theirs).max()


def test_vim_takes_the_papers_rule_for_its_dimension():
    train, val, test = world(width=12)
    by_rule = create_detector("vim").fit(activations(train)).score(activations(test))
    by_hand = create_detector("vim", dim=6).fit(activations(train)).score(activations(test))
    assert by_rule.equal(by_hand)


def test_mds_ignores_a_class_without_images():
    train, _, test = world()
    kept = train["labels"] != 3
    partial = {**train, **{key: train[key][kept] for key in ("features", "logits", "labels", "perturbed")}}
    ours = create_detector("mds").fit(activations(partial)).score(activations(test)).numpy()
    theirs = first.mds(partial, test)
    assert np.allclose(ours, theirs, rtol=1e-6)
