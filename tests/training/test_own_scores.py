"""A network that a method trained is judged by all detectors that apply to it, its own among them."""

import numpy as np
import pytest
import torch

import oodscope as oods
from oodscope.data.preprocess import Preprocess
from oodscope.training.registry import create_recipe
from tests.training.training_toys import colours, negatives

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


def judged(name, bench, tmp_path, **settings):
    recipe = create_recipe(name, epochs=3, batch_size=16, **settings)

    def build():
        return oods.create_model("small_cnn", num_classes=3)[0]

    trained = oods.train(build, recipe, bench.id_train, SIZE, device="cpu")
    classifier = oods.Classifier(trained.model, SIZE, device="cpu")
    return trained.model, classifier, oods.evaluate(classifier, bench, store=oods.ActivationStore(tmp_path))


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
