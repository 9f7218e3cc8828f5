"""A trained network opens without the recipe that prepared it."""

import copy
import json

import pytest
import torch
from torch import nn

import oodscope.training.network as network
from oodscope.base.errors import ModelError
from oodscope.models.zoo.zoo import create_model
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.network import NetworkRecord, StageRecord, network_beside
from oodscope.training.recipe import TrainingFacts
from oodscope.training.registry import RECIPES, create_recipe
from oodscope.training.wrappers import Before, Change, apply_changes, describe_changes

FACTS = TrainingFacts(("a", "b", "c"), n_train=96, size=12, n_ood=40, hierarchy={"kind": ("x", "y", "y")})
START = NetworkRecord(architecture="small_cnn", num_classes=3, stages=())


def start():
    return create_model("small_cnn", num_classes=3).model


@pytest.mark.parametrize("name", [name for name in RECIPES if not RECIPES.get(name).own_network])
def test_every_recipe_of_ours_is_described(name, tmp_path, monkeypatch):
    recipe = create_recipe(name)
    record = START.followed_by([StageRecord.of(recipe, FACTS)])
    assert record.stages[0].changes is not None, "name the layer that it adds in training/wrappers.py"
    prepared = recipe.prepare(start(), FACTS).eval()
    record.write(tmp_path)

    def gone(declared):
        raise AssertionError("no recipe is asked")

    monkeypatch.setattr(network, "read_recipe", gone)
    found = network_beside(tmp_path / "model.safetensors")
    opened = found.build().eval()
    opened.load_state_dict(prepared.state_dict())
    images = torch.rand(4, 3, 16, 16)
    for one, other in zip(outputs(prepared, images), outputs(opened, images), strict=True):
        assert torch.equal(one, other)


def outputs(model, images):
    with torch.no_grad():
        output = model(images)
    return list(output.values()) if isinstance(output, dict) else [output]


def test_stages_follow_each_other():
    chain = [StageRecord.of(create_recipe(name), FACTS) for name in ("fine_tune", "conf_branch", "cross_entropy")]
    record = START.followed_by(chain)
    given = [change.layer for change in record.stages[1].changes if change.layer]
    assert given[0]["facts"]["main"] == {"given": "fc.5"}, "the layer that the stage before made"
    output = record.build().eval()(torch.rand(2, 3, 16, 16))
    assert set(output) == {"logits", "confidence"} and record.stages[2].changes == ()


class Unregistered(nn.Module):
    """A layer that nobody registered."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, features):
        return 2 * self.inner(features)


class Doubled(CrossEntropy):
    def prepare(self, model, facts):
        model.fc = Unregistered(model.fc)
        return model


class Learnt(CrossEntropy):
    def prepare(self, model, facts):
        model.register_parameter("factor", nn.Parameter(torch.ones(())))
        return model


class Hidden(CrossEntropy):
    """A changed attribute is seen in no tensor and no new module."""

    def prepare(self, model, facts):
        model.mode = "other"
        return model


@pytest.mark.parametrize("cls", [Doubled, Learnt, Hidden])
def test_what_cannot_be_described_is_left_to_the_recipe(cls, monkeypatch):
    monkeypatch.setattr(RECIPES, "_registered", {"own": cls})
    cls.name = "own"
    record = START.followed_by([StageRecord.of(cls(), FACTS)])
    assert record.stages[0].changes is None
    expected = cls().prepare(start(), FACTS)
    assert record.build().state_dict().keys() == expected.state_dict().keys()


def test_a_network_inside_another_and_buffers_of_any_type():
    model = start()
    before = Before(model)
    model.body.register_buffer("rows", torch.arange(5))
    wrapped = nn.Sequential(model, nn.Identity())
    changes = describe_changes(before, wrapped, start)
    assert changes is None, "a buffer within a module that is kept whole is not described"
    plain = describe_changes(Before(inner := start()), nn.Sequential(inner, nn.Identity()), start)
    assert [change.layer["facts"]["parts"][0] for change in plain] == [{"given": ""}]
    copied = start()
    again = Before(copied)
    copied.body.register_buffer("rows", torch.arange(5))
    (change,) = describe_changes(again, copied, start)
    assert (change.path, change.buffer, change.shape, change.dtype) == ("body", "rows", (5,), "int64")


@pytest.mark.parametrize(
    "change",
    [
        {"path": "fc", "layer": {"wrapper": "os.system", "facts": {}}},
        {"path": "fc", "layer": {"wrapper": "linear", "facts": {"in_features": -1, "out_features": 2}}},
        {"path": "nowhere.fc", "layer": {"wrapper": "relu", "facts": {}}},
        {"path": "fc", "layer": {"given": "nowhere"}},
        {"path": "fc", "layer": {"wrapper": "linear", "facts": {"sides": 3}}},
        {"path": "", "buffer": "b", "dtype": "nn"},
    ],
)
def test_records_of_others_are_refused_in_one_line(change):
    with pytest.raises(ModelError, match="a change at .* that cannot be made") as caught:
        apply_changes(start(), [Change(**json.loads(json.dumps(change)))])
    assert "\n" not in str(caught.value)


def test_the_network_is_left_as_it_was():
    model = start()
    kept = copy.deepcopy(model.state_dict())
    describe_changes(Before(model), model, start)
    assert all(torch.equal(kept[name], value) for name, value in model.state_dict().items())
