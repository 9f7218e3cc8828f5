"""What every detector promises, whatever it computes."""

import json

import numpy as np
import pytest
import torch
from sklearn.base import clone

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError, UnknownNameError, UsageError
from oodscope.base.paper import Paper
from oodscope.data.benchmark import Validation
from oodscope.detectors.base import Detector, Needs
from oodscope.detectors.registry import DETECTORS, create_detector
from oodscope.detectors.saving import load_detector
from oodscope.detectors.tuning import tune
from tests.detectors.cases import NEEDS_RESIDUAL, each
from tests.detectors.worlds import activations, world

NAMES = [*DETECTORS.names(), "react+msp"]


def fitted(name, seed=0, **params):
    train, val, test = world(seed)
    detector = create_detector(name, **params)
    detector.fit(activations(train, detector.probes), activations(val, detector.probes))
    return detector, activations(test, detector.probes)


@pytest.mark.parametrize("name", each(NAMES))
def test_noise_scores_above_data(name):
    """Larger = more OOD: training-like rows against rows with logits near uniform and features off the data."""
    rng = np.random.default_rng(1)
    weight = (np.kron(np.eye(5), np.ones(12)) - 0.2) / 4

    def rows(features):
        logits = features @ weight.T
        return {
            "features": features,
            "weight": weight,
            "bias": np.zeros(5),
            "logits": logits,
            "labels": np.arange(len(features)) % 5,
            "perturbed": logits,
            "perturbed_features": features + 0.01 * rng.normal(size=features.shape) ** 2,
            "maps": np.stack([features, features], axis=1),
            "gram": np.stack([features**2, features**3], axis=1),
            "rank_reduced": np.stack([logits * 0.9, logits * 0.8], axis=1),
            "negative_sums": np.full((len(features), 3), 60.0),
            "local": np.full((len(features), 1), 0.3),
            "pair_matches": np.full((len(features), 1), 0.5),
            "confidence": logits.max(axis=1, keepdims=True),
            # outliers: heads that differ, "others" everywhere, and no numerator above the rest
            "second": logits * 0.5,
            "others": -logits,
            "numerators": logits,
            "joint": logits,
            "reject": np.zeros((len(features), 1)),
            "turns": np.full((len(features), 4), 0.5),
            # views of data agree with the rows that are known, and score high in the layer of turns
            "turned": np.stack([np.concatenate([features, logits.max(axis=1, keepdims=True)], axis=1)] * 4, axis=1),
            "certified": 1 / (1 + np.exp(-logits.max(axis=1, keepdims=True))),
            "variance": np.ones((len(features), 1)),
            "members": logits[:, None] + rng.normal(size=(len(features), 4, 5)),
            "mixed": np.repeat(0.5 * features[:, None] + 0.5, 3, axis=1),
            # a wrapped score is larger for noise in every copy
            "pushed": np.repeat(-logits.max(axis=1, keepdims=True), 4, axis=1),
            "noisy": np.repeat(-logits.max(axis=1, keepdims=True), 25, axis=1),
            "corrupted": np.repeat(-logits.max(axis=1, keepdims=True), 4, axis=1),
            "own_score": -logits.max(axis=1, keepdims=True),
            "background_score": np.zeros((len(features), 1)),
            "compressed": np.zeros((len(features), 1)),
        }

    def known(count):
        return rows(np.abs(4 * (weight > 0)[np.arange(count) % 5] + rng.normal(size=(count, 60)) * 0.3))

    noise = rows(np.abs(rng.normal(size=(200, 60))))
    detector = create_detector(name)
    detector.fit(activations(known(2000), detector.probes), activations(known(100), detector.probes))
    inside = detector.score(activations(known(200), detector.probes))
    outside = detector.score(activations(noise, detector.probes))
    assert outside.median() > inside.quantile(0.95)


@pytest.mark.parametrize("name", each(NAMES))
def test_row_order_and_chunk_size_do_not_matter(name, monkeypatch):
    detector, test = fitted(name)
    whole = detector.score(test)
    order = np.random.default_rng(0).permutation(len(test))
    shuffled = detector.score(test.take(order))
    assert torch.allclose(shuffled, whole[torch.from_numpy(order)], rtol=1e-9, atol=1e-9)
    in_sevens = torch.cat([detector.score(chunk) for chunk in test.chunks(rows=7)])
    assert torch.allclose(in_sevens, whole, rtol=1e-6, atol=1e-6 * float(whole.std()))


@pytest.mark.parametrize("name", each(NAMES))
def test_saved_and_loaded_scores_are_equal(name, tmp_path):
    detector, test = fitted(name)
    detector.save(tmp_path / "detector.safetensors")
    loaded = load_detector(tmp_path / "detector.safetensors")
    assert repr(loaded) == repr(detector)
    assert loaded.score(test).equal(detector.score(test))


@pytest.mark.parametrize("name", each(NAMES))
def test_clone_keeps_parameters_and_forgets_the_fit(name):
    detector, _ = fitted(name)
    twin = clone(detector)
    assert repr(twin.get_params(deep=False)) == repr(detector.get_params(deep=False))
    assert not twin.fitted


@pytest.mark.parametrize("name", each(NAMES))
def test_nan_is_refused_by_name_and_row(name):
    detector, test = fitted(name)
    columns = {key: test[key].clone() for key in test if key != "prediction"}
    for column in columns.values():
        if column.is_floating_point():
            column[3], column[17] = float("nan"), float("inf")
    logits, features, labels = (columns.pop(key) for key in ("logits", "features", "labels"))
    broken = Activations(logits=logits, features=features, labels=labels, head=test.head, columns=columns)
    with pytest.raises(DetectorError, match=rf"^{detector.name}: .* in 2 of 100 rows \(3, 17\)"):
        detector.score(broken)


@pytest.mark.parametrize("name", each(n for n in NAMES if Needs.TRAIN in create_detector(n).needs))
def test_unfitted_detector_says_so(name):
    _, test = fitted(name)
    with pytest.raises(DetectorError, match="not fitted"):
        create_detector(name).score(test)
    assert repr(create_detector(name)).endswith("[not fitted]")


def without_class(rows, gone):
    """A world in which one class has no images, neither to learn from nor held out."""
    kept = {prefix: rows[f"{prefix}labels"] != gone for prefix in ("", "val_") if f"{prefix}labels" in rows}
    length = len(rows["labels"])

    def part(key, column):
        if key.startswith("val_"):
            return column[kept["val_"]]
        return column[kept[""]] if len(column) == length and key not in ("weight", "bias") else column

    return {key: part(key, column) for key, column in rows.items()}


ODD = {
    "a class without images": lambda: [without_class(rows, 3) if i < 2 else rows for i, rows in enumerate(world())],
    "three features": lambda: world(width=3),
    "a thousand classes": lambda: world(classes=1000, n=2100, width=16),
}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow if kind == "a thousand classes" else ()) for kind in ODD]
)
@pytest.mark.parametrize("name", each(NAMES))
def test_odd_worlds_give_finite_scores(name, kind):
    train, val, test = ODD[kind]()
    # a network that is sometimes right: without any right answer openmax has nothing to learn, and says so
    said = train["logits"].argmax(axis=1)
    train["labels"] = np.where(np.isin(said, train["labels"]), said, train["labels"])
    detector = create_detector(name)
    if name in NEEDS_RESIDUAL and train["weight"].shape[0] >= train["weight"].shape[1]:
        with pytest.raises(DetectorError, match=rf"{name}: the head of \d+ classes reads all \d+ features"):
            detector.fit(activations(train), activations(val))
        return
    detector.fit(activations(train, detector.probes), activations(val, detector.probes))
    scores = detector.score(activations(test, detector.probes))
    assert torch.isfinite(scores).all()
    assert len(scores) == len(test["labels"])


@pytest.mark.parametrize(
    "name", each(n for n in NAMES if create_detector(n).learns and create_detector(n).get_params())
)
def test_setting_any_parameter_unfits(name):
    for parameter in create_detector(name).get_params(deep=False):
        detector, test = fitted(name)
        setattr(detector, parameter, getattr(detector, parameter))
        assert not detector.fitted, parameter
        with pytest.raises(DetectorError, match="not fitted"):
            detector.score(test)


def test_changing_a_parameter_unfits():
    detector, test = fitted("knn")
    detector.k = 3
    assert not detector.fitted
    with pytest.raises(DetectorError, match="not fitted"):
        detector.score(test)


def test_changed_k_is_used_after_refitting():
    train, _, test = world()
    detector = create_detector("knn").fit(activations(train))
    before = detector.score(activations(test))
    after = detector.set_params(k=3).fit(activations(train)).score(activations(test))
    assert bool((after < before).all())


def test_repr_is_honest():
    assert repr(create_detector("knn", k=7)) == "KNN(bank_fraction=None, k=7, seed=0) [not fitted]"
    assert create_detector("knn").id == "knn"
    assert create_detector("knn", k=7).id == "knn(k=7)"
    assert create_detector("react+msp", percentile=95).id == "react(percentile=95)+msp"


def test_unknown_detector_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match=r"unknown detector 'vimm'\. Did you mean 'vim'.*list detectors"):
        create_detector("vimm")


def test_unknown_parameter_suggests_the_nearest():
    with pytest.raises(UsageError, match=r"knn: no parameter 'bank_fractoin'\. Did you mean 'bank_fraction'"):
        create_detector("knn", bank_fractoin=0.5)


def test_only_rectifiers_combine():
    with pytest.raises(UsageError, match="before '\\+' must be a rectifier"):
        create_detector("knn+msp")
    with pytest.raises(UsageError, match="before '\\+' must be a rectifier"):
        create_detector("react+knn")


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("vim", {"dim": 12}, r"vim: features are 12-dimensional, dim=12 leaves no residual space.*paper: 6"),
        ("knn", {"k": 301}, r"knn: k=301 needs at least 301 remembered training images, there are 300"),
        ("knn", {"bank_fraction": 0.0}, r"knn: bank_fraction must lie in \(0, 1\], not 0.0"),
        ("react", {"percentile": 0}, r"react: percentile must lie in \(0, 100\], not 0"),
    ],
)
def test_parameters_that_make_no_sense(name, params, message):
    with pytest.raises(DetectorError, match=message):
        fitted(name, **params)


def test_labels_out_of_range_are_named():
    train, _, _ = world()
    train["labels"] = np.where(np.arange(300) == 4, 99, train["labels"])
    with pytest.raises(DetectorError, match=r"mds: label 99 of row 4 is out of range 0\.\.4"):
        create_detector("mds").fit(activations(train))


def test_missing_columns_are_named():
    with pytest.raises(DetectorError, match="knn: needs features"):
        create_detector("knn").fit(Activations(logits=np.zeros((3, 2), dtype=np.float32), labels=[0, 1, 0]))
    with pytest.raises(DetectorError, match="vim: needs the head's weight and bias"):
        zeros = np.zeros((3, 2), dtype=np.float32)
        create_detector("vim").fit(Activations(logits=zeros, features=zeros, labels=[0, 1, 0]))


def test_a_file_that_is_no_detector(tmp_path):
    (tmp_path / "x").write_bytes(b"nonsense")
    with pytest.raises(DetectorError, match="not a saved detector"):
        load_detector(tmp_path / "x")


def test_a_detector_of_ones_own_in_a_few_lines():
    class Norm(Detector):
        name = "norm"
        paper = Paper("none", "nobody", "here")
        needs = Needs.FEATURES

        def _score(self, batch):
            return -batch.features.norm(dim=1)

    DETECTORS.register("norm", Norm)
    _, _, test = world()
    assert create_detector("norm").score(activations(test)).shape == (100,)
    DETECTORS._registered.clear()


class TestTuning:
    def validation(self):
        train, val, test = world()
        return activations(train), Validation(activations(val), activations(test))

    def test_finds_the_best_of_the_grid_as_a_slow_search_does(self):
        # of 50, 100, 200, 500, 1000 three lie below the 250 images of each class
        train, val, test = (activations(part) for part in world(n=1250))
        validation = Validation(val, test)
        tuned, choice = tune(create_detector("knn"), train, validation)
        from sklearn.metrics import roc_auc_score

        def slow(k):
            detector = create_detector("knn", k=k).fit(train)
            known, foreign = detector.score(validation.id), detector.score(validation.ood)
            return roc_auc_score([0] * len(known) + [1] * len(foreign), torch.cat([known, foreign]).numpy())

        aurocs = {k: slow(k) for k in (50, 100, 200)}
        assert choice.grid_size == 3
        assert choice.params == {"k": max(aurocs, key=aurocs.get)}
        assert choice.validation_auroc == pytest.approx(max(aurocs.values()), abs=1e-12)
        assert tuned.k == choice.params["k"]
        assert choice.track == "ood_val"

    def test_react_is_refitted_for_every_percentile(self):
        train, validation = self.validation()
        tuned, choice = tune(create_detector("react"), train, validation)
        assert choice.grid_size == 4
        assert tuned.percentile == choice.params["percentile"]

    def test_a_detector_without_grid_comes_back_as_it_is(self):
        train, validation = self.validation()
        detector = create_detector("msp")
        tuned, choice = tune(detector, train, validation)
        assert tuned is detector
        assert choice.grid_size == 1

    def test_params_are_json(self):
        from oodscope.detectors.base import parameters_json

        assert json.loads(json.dumps(parameters_json(create_detector("react+msp")))) == {
            "percentile": 90,
            "logit_score": {"detector": "msp", "params": {}},
        }
