"""What a detector says of itself is true."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Tap
from oodscope.activations.probes.taps import MemberLogits
from oodscope.base.catalog import catalog
from oodscope.base.errors import DetectorError
from oodscope.detectors.base import Capabilities, Cost, Needs
from oodscope.detectors.registry import DETECTORS, create_detector
from tests.detectors.cases import each
from tests.detectors.worlds import activations, world

NAMES = DETECTORS.names()
FITTED_HERE = [name for name in NAMES if Needs.IMAGES not in create_detector(name).needs]
OF_LOGITS = [
    name
    for name in FITTED_HERE
    if Needs.LOGITS in create_detector(name).needs and not create_detector(name).needs & (Needs.FEATURES | Needs.HEAD)
]
"""Those that a network without a linear head, such as an ensemble, allows."""
"""The others bring a trained network of their own, without which they say so first (test_imagescore.py)."""
EVERYTHING = Capabilities(
    head=True,
    train=True,
    held_out=True,
    stages=4,
    members=3,
    negatives=2,
    patches=True,
    outputs=("confidence", "rotation", "numerators", "others", "second", "joint", "reject", "variance", "projection"),
    dropouts=1,
    bounded=True,
)


def only(rows, detector, without=()):
    """Activations with the columns that a detector says it needs, and no others."""
    full, needs = activations(rows, detector.probes), detector.needs
    keep = {
        "logits": Needs.LOGITS in needs,
        "features": Needs.FEATURES in needs,
        "labels": Needs.LABELS in needs | detector.optional,
        "prediction": False,
    }
    columns = {name: full[name] for name in full if keep.get(name, True) and name not in without}
    named = {name: columns.pop(name) for name in ("logits", "features", "labels") if name in columns}
    return Activations(**named, head=full.head if Needs.HEAD in needs else None, columns=columns)


def fitted_on(detector, train, val):
    needs = detector.needs
    if Needs.TRAIN in needs:
        return detector.fit(only(train, detector), only(val, detector))
    return detector.fit(None, only(val, detector)) if Needs.HELD_OUT in needs else detector


@pytest.mark.parametrize("name", each(NAMES))
def test_what_it_needs_is_enough(name):
    train, val, test = world()
    detector = fitted_on(create_detector(name), train, val)
    ours = detector.score(only({**test, **unlabelled(test)}, detector, without=("labels",)))
    rich = create_detector(name)
    rich.fit(activations(train, rich.probes), activations(val, rich.probes))
    assert torch.allclose(ours, rich.score(activations(test, rich.probes)))


def unlabelled(rows):
    return {"labels": np.full(len(rows["labels"]), -1)}


@pytest.mark.parametrize("name", each(NAMES))
def test_each_thing_it_needs_is_missed(name):
    train, val, test = world()
    detector = fitted_on(create_detector(name), train, val)
    columns = [column for column in only(test, detector, without=("labels",)) if column != "prediction"]
    assert columns
    for column in columns:
        if len(columns) == 1:
            lacking = Activations(columns={"something_else": np.zeros((3, 2), dtype=np.float32)})
        else:
            lacking = only(test, detector, without=(column, "labels"))
        with pytest.raises(DetectorError, match=f"{name}: needs "):
            detector.score(lacking)


@pytest.mark.parametrize("name", each(name for name in NAMES if Needs.LABELS in create_detector(name).needs))
def test_labels_are_needed_where_it_says_so(name):
    train, val, _ = world()
    detector = create_detector(name)
    with pytest.raises(DetectorError, match="fitting needs the labels"):
        detector.fit(only(train, detector, without=("labels",)), only(val, detector, without=("labels",)))


@pytest.mark.parametrize("name", each(NAMES))
def test_probes_are_declared(name):
    needs, probes = create_detector(name).needs, create_detector(name).probes
    assert bool(probes) == bool(
        needs
        & (
            Needs.GRADIENTS
            | Needs.MAPS
            | Needs.MEMBERS
            | Needs.NEGATIVES
            | Needs.PATCHES
            | Needs.OUTPUTS
            | Needs.DROPOUT
            | Needs.BOUNDS
            | Needs.COPIES
            | Needs.IMAGES
        )
    )
    assert (Needs.MEMBERS in needs) == any(isinstance(probe, MemberLogits) for probe in probes)
    if Needs.GRADIENTS in needs:
        train, val, _ = world()
        detector = create_detector(name)
        detector.fit(activations(train, detector.probes), activations(val, detector.probes))
        assert any(probe.backwards for probe in detector.probes)


def state_bytes(name, rows):
    train, val, _ = world(n=rows)
    detector = create_detector(name)
    detector.fit(activations(train, detector.probes), activations(val, detector.probes))
    tensors = [value for value in detector._state().values() if isinstance(value, torch.Tensor)]
    return detector, sum(value.numel() * value.element_size() for value in tensors)


@pytest.mark.parametrize("name", each(NAMES))
def test_the_cost_class(name):
    detector, small = state_bytes(name, 600)
    _, large = state_bytes(name, 1800)
    cost, needs = detector.cost, detector.needs
    passes = any(probe.forwards or probe.backwards for probe in detector.probes)
    assert (cost is Cost.PASSES) == passes
    if cost is Cost.BANK or name == "csi_unlabelled":  # it takes passes, and remembers training images too
        assert large > 2 * small
    elif Needs.TRAIN in needs:
        # what is kept does not grow with the training images; how many directions matter may vary a little
        assert large < 1.2 * max(small, 1)
    if cost is Cost.LOGITS:
        assert not needs & (Needs.FEATURES | Needs.HEAD | Needs.MAPS)
    if cost is Cost.HEAD:
        assert Needs.FEATURES in needs
    if cost in (Cost.MOMENTS, Cost.BANK, Cost.TRAINING):
        assert Needs.TRAIN in needs
    if all(isinstance(probe, Tap) for probe in detector.probes):
        assert not passes


@pytest.mark.parametrize("name", each(FITTED_HERE))
def test_signed_features(name):
    train, val, test = world()
    for rows in (train, val, test):
        for key in ("features", "val_features", "perturbed_features"):
            if key in rows:
                rows[key] = rows[key] - 1.5
    detector = create_detector(name)

    def judge():
        detector.fit(activations(train, detector.probes), activations(val, detector.probes))
        return detector.score(activations(test, detector.probes))

    if detector.signed_features_ok:
        assert torch.isfinite(judge()).all()
    else:
        with pytest.raises(DetectorError, match=f"{name}: needs features of zero or more"):
            judge()
    assert (detector.unmet_requirement(replace(EVERYTHING, signed=True)) is None) == detector.signed_features_ok


@pytest.mark.parametrize("name", each(OF_LOGITS))
def test_log_probabilities(name):
    train, val, test = world()
    for rows in (train, val, test):
        rows["logits"] = torch.as_tensor(rows["logits"]).double().log_softmax(dim=1).float().numpy()
    detector = create_detector(name)
    detector.fit(activations(train, detector.probes), activations(val, detector.probes))
    spread = float(detector.score(activations(test, detector.probes)).double().std())
    assert (spread > 1e-4) == detector.log_probabilities_ok
    lost = replace(EVERYTHING, log_probabilities=True)
    assert (detector.unmet_requirement(lost) is None) == detector.log_probabilities_ok


@pytest.mark.parametrize(
    ("lacking", "flag"),
    [
        ({"head": False}, Needs.FEATURES | Needs.HEAD),
        ({"train": False}, Needs.TRAIN),
        ({"train": False, "held_out": False}, Needs.TRAIN | Needs.HELD_OUT),
        ({"stages": 0}, Needs.MAPS),
        ({"members": 0}, Needs.MEMBERS),
        ({"negatives": 0}, Needs.NEGATIVES),
        ({"patches": False}, Needs.PATCHES),
        ({"outputs": ()}, Needs.OUTPUTS),
        ({"dropouts": 0}, Needs.DROPOUT),
        ({"bounded": False}, Needs.BOUNDS),
    ],
)
def test_what_is_not_there_is_named_beforehand(lacking, flag):
    capabilities = Capabilities(**{**vars(EVERYTHING), **lacking})
    for name in FITTED_HERE:
        detector = create_detector(name)
        assert detector.unmet_requirement(EVERYTHING) is None
        assert (detector.unmet_requirement(capabilities) is not None) == bool(detector.needs & flag), name


@pytest.mark.parametrize("name", each(NAMES))
def test_the_catalogue_says_the_same(name):
    entry, cls = catalog("detectors")[name], DETECTORS.get(name)
    assert entry["cost"] == create_detector(name).cost
    assert entry["signed_features_ok"] == create_detector(name).signed_features_ok
    assert entry["unverified_form"] == cls.unverified_form
    assert cls.paper.title
    assert cls.paper.venue
    assert json.dumps(entry)
    for parameter, values in cls.grid.items():
        assert parameter in entry["parameters"]
        assert len(values) == len(set(map(str, values)))


def test_papers_are_cited_where_the_docstring_has_an_equation():
    for name in NAMES:
        text = DETECTORS.get(name).__doc__
        assert ".. math::" in text, name
