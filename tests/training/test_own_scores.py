"""A network that a method trained is judged by all detectors that apply to it, its own among them."""

import numpy as np
import pytest
import torch

import oodscope as oods
from oodscope.data.preprocess import Preprocess
from oodscope.detectors.capabilities import capabilities_of
from oodscope.training.registry import create_recipe
from tests.training.training_toys import colours, grouped, negatives

SIZE = Preprocess(size=12)


@pytest.fixture(scope="module")
def bench():
    sets = {
        "id_test": colours(60, seed=3, name="test"),
        "id_train": colours(120, name="train"),
        "id_val": colours(30, seed=4, name="val"),
        "near": (negatives(30),),
    }
    return oods.Benchmark("colours", "1", transform=SIZE, **sets)


def judged(name, bench, tmp_path, detectors=None, **settings):
    recipe = create_recipe(name, **{"epochs": 3, "batch_size": 16, **settings})

    def build():
        return oods.create_model("small_cnn", num_classes=3)[0]

    images = grouped(120) if name == "mos" else bench.id_train
    outliers = negatives(20) if recipe.ood_batch_size else None
    trained = oods.train(build, recipe, images, SIZE, ood_train=outliers, device="cpu")
    classifier = oods.Classifier(trained.model, SIZE, device="cpu")
    store = oods.ActivationStore(tmp_path)
    asked = [] if detectors is None else [detectors]
    return trained.model, classifier, oods.evaluate(classifier, bench, *asked, store=store)


def unmet(name, classifier):
    """Why a detector does not apply to a network, if it does not."""
    detector = oods.create_detector(name)
    return detector.unmet_requirement(capabilities_of([detector], classifier, train=True, held_out=True))


def pictures(images):
    return SIZE(images.images(range(len(images))))


def test_conf_branch(bench, tmp_path):
    model, classifier, result = judged("conf_branch", bench, tmp_path)
    assert classifier.head_path == "fc.main", classifier.head_reason
    assert {"conf_branch", "msp", "knn", "vim"} <= set(result.scores.detectors)
    assert "rotpred" in result.record.skipped
    with torch.no_grad():
        said = model(pictures(bench.id_test))["confidence"].flatten()
    np.testing.assert_allclose(result.scores.scores("conf_branch", set="test"), -said.numpy(), rtol=1e-4, atol=1e-5)


def test_rotpred(bench, tmp_path):
    model, _, result = judged("rotpred", bench, tmp_path)
    images = pictures(bench.id_test)
    with torch.no_grad():
        turned = [model(images.rot90(turn, (2, 3))) for turn in range(4)]
    p = turned[0]["logits"].double().softmax(1)
    kl = (1 / 3 * torch.log(1 / 3 / p)).sum(1)
    ce = sum(-output["rotation"].double().log_softmax(1)[:, turn] for turn, output in enumerate(turned)) / 4
    found = result.scores.scores("rotpred", set="test")
    np.testing.assert_allclose(found, (ce - kl).numpy(), rtol=1e-4, atol=1e-4)
    assert "conf_branch" in result.record.skipped


def test_godin(bench, tmp_path):
    model, classifier, result = judged("godin", bench, tmp_path, ["godin", "knn"], epochs=1)
    assert classifier.head is None and classifier.has_features
    assert {"godin", "knn"} == set(result.scores.detectors), "features are what the last layer reads"
    assert "linear head" in unmet("react", classifier) and unmet("mds", classifier) is None
    images = pictures(bench.id_test).requires_grad_(True)
    model(images)["numerators"].amax(1).sum().backward()
    stepped = images + 0.0025 * torch.where(images.grad >= 0, 1.0, -1.0) / torch.tensor(SIZE.std).view(1, -1, 1, 1)
    with torch.no_grad():
        expected = -model(stepped)["numerators"].amax(1)
    found = result.scores.scores("godin", set="test")
    # a step of the sign differs where a gradient is zero but for rounding
    assert np.mean(np.abs(found - expected.numpy()) < 1e-4) > 0.9


def test_mos(bench, tmp_path):
    model, classifier, result = judged("mos", bench, tmp_path, ["mos"], learning_rate=0.1)
    assert classifier.head is None and classifier.has_features
    with torch.no_grad():
        output = model(pictures(bench.id_test))
    expected = output["others"].exp().amin(1)
    np.testing.assert_allclose(result.scores.scores("mos", set="test"), expected.numpy(), rtol=1e-4, atol=1e-6)
    assert output["logits"].shape == (60, 3) and output["logits"].max() <= 0


def test_mcd(bench, tmp_path):
    model, classifier, result = judged("mcd", bench, tmp_path, ["mcd"], outlier_epochs=1, ood_batch_size=8)
    assert classifier.head_path == "fc.main"
    with torch.no_grad():
        output = model(pictures(bench.id_test))
    expected = (output["logits"].softmax(1) - output["second"].softmax(1)).abs().sum(1)
    np.testing.assert_allclose(result.scores.scores("mcd", set="test"), expected.numpy(), rtol=1e-3, atol=1e-5)


def test_csi(bench, tmp_path):
    model, classifier, result = judged("csi_heads", bench, tmp_path, ["csi"], epochs=1)
    assert classifier.head_path == "fc.main"
    with torch.no_grad():
        turns = [model(pictures(bench.id_test).rot90(k, (2, 3)))["joint"][:, 3 * k : 3 * k + 3] for k in range(4)]
    expected = 1 - torch.stack(turns).mean(0).softmax(1).amax(1)
    np.testing.assert_allclose(result.scores.scores("csi", set="test"), expected.numpy(), rtol=1e-3, atol=1e-5)


def test_cider_is_judged_by_the_features_before_its_projection(bench, tmp_path):
    model, classifier, result = judged("cider", bench, tmp_path, ["knn", "msp"], epochs=1, warmup_epochs=0, size=9)
    assert classifier.head is None and "head: none" in classifier.describe()
    assert {"knn", "msp"} == set(result.scores.detectors) and unmet("mahalanobis_pp", classifier) is None
    inputs = []
    hook = model.fc.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    logits, features = classifier.forward(pictures(bench.id_test))
    hook.remove()
    assert torch.equal(features, inputs[-1]) and features.shape[1] != model.fc.prototypes.shape[1]
    torch.testing.assert_close(logits, model(pictures(bench.id_test))["logits"])


@pytest.mark.parametrize(("name", "path", "own"), [("vos", "fc.main", "ebo"), ("ish", "fc", "scale"),
                                                   ("ascood", "fc.1", "scale"), ("udg", "fc.main", "msp")])  # fmt: skip
def test_heads_that_stay_linear_are_found(bench, tmp_path, name, path, own):
    outliers = {"ood_batch_size": 8} if name == "udg" else {}
    _, classifier, result = judged(name, bench, tmp_path, [own], epochs=1, **outliers)
    assert classifier.head_path == path, classifier.head_reason
    assert [own] == list(result.scores.detectors)
    assert unmet("react", classifier) is None and unmet("knn", classifier) is None


def test_arpl_has_no_linear_head(bench, tmp_path):
    _, classifier, result = judged("arpl", bench, tmp_path)
    assert classifier.head is None
    assert {"msp", "mls"} <= set(result.scores.detectors)
    assert "features before a linear head" in result.record.skipped["react"]


@pytest.mark.parametrize("scale_at_test", [True, False])
def test_t2fnorm_has_the_head_of_its_formula(bench, tmp_path, scale_at_test):
    model, classifier, result = judged("t2fnorm", bench, tmp_path, scale_at_test=scale_at_test)
    assert classifier.head_path == "fc.1", classifier.head_reason
    inputs = []
    hook = model.fc.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    logits, features = classifier.forward(pictures(bench.id_test))
    hook.remove()
    torch.testing.assert_close(features, inputs[0] / 0.1 if scale_at_test else inputs[0])
    torch.testing.assert_close(logits, features @ model.fc[1].weight.T + model.fc[1].bias)
    assert {"msp", "react", "knn"} <= set(result.scores.detectors)


def test_members_with_outputs_of_their_own_vote_by_logits(bench):
    from oodscope.models.classifier.ensemble import Ensemble

    recipe = create_recipe("conf_branch", epochs=1, batch_size=16)
    nets = [
        oods.train(
            lambda: oods.create_model("small_cnn", num_classes=3)[0],
            recipe.model_copy(update={"seed": seed}),
            bench.id_train,
            SIZE,
            device="cpu",
        ).model
        for seed in (0, 1)
    ]
    found = Ensemble(nets).eval()(pictures(bench.id_test))
    assert found["member_logits"].shape == (60, 2, 3)
