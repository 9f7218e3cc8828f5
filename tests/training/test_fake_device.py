"""Every method's step on a device that is not there: what was made on the host by mistake, and what asks the host.

Tensors that hold no numbers but know their device stand in for a GPU. A product of one on the GPU with one on the host
is refused, and so is a question for a number, which a recorded step may not ask.
"""

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode

from oodscope.training.augment.fractals import draw_fractals
from oodscope.training.augment.operations import constants
from oodscope.training.augment.reading import KINDS
from oodscope.training.methods.noise import NoiseTraining
from oodscope.training.recipe import Batch, Scale, TrainingFacts
from oodscope.training.registry import create_recipe
from tests.training.every_method import MADE, PLAIN, SCALE, prepared

GPU = "cuda"
OWN = {
    "autoencoder": {"width": 4, "code": 4},
    "glow": {"levels": 2, "flow_steps": 1, "width": 4},
    "pixelcnn": {"filters": 4, "blocks": 1, "resolutions": 2, "mixtures": 2},
    "nae": {"width": 4, "code": 4, "plain_epochs": 0, "latent_steps": 2, "pixel_steps": 2},
}
ASKS = {"nae", *PLAIN}
"""Methods whose step asks the host, and which say so."""


def moved(mode, value):
    """A value as it would be on the GPU; the random numbers stay on the host, from where each draw is sent."""
    if isinstance(value, torch.Tensor):
        return mode.from_tensor(value).to(GPU)
    if isinstance(value, Batch | Scale):
        return type(value)(*(moved(mode, each) for each in value))
    return value


@pytest.fixture
def mode(monkeypatch):
    constants.cache_clear()
    draw_fractals.cache_clear()
    # no gradient can be taken where there is no device: attacks take zeros for it
    monkeypatch.setattr(torch.autograd, "grad", lambda _, leaf, *more, **options: (torch.zeros_like(leaf),))
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    yield FakeTensorMode()
    torch.__future__.set_overwrite_module_params_on_conversion(before)
    constants.cache_clear()  # tables that are kept for a device must not outlive one that is not there
    draw_fractals.cache_clear()


def stepped(mode, recipe, net, shown):
    with mode:
        net._apply(lambda each: mode.from_tensor(each).to(GPU))
        return recipe.loss(net.train(), moved(mode, shown))


@pytest.mark.parametrize("name", [name for name in MADE if name not in ASKS | {"distill"}])
def test_a_step_stays_on_its_device_and_asks_for_nothing(mode, name):
    """Teachers of distillation are opened from files, which a device that is not there cannot hold."""
    recipe, net, shown = prepared(name)
    assert recipe.can_be_recorded()
    assert stepped(mode, recipe, net, shown).loss.device.type == GPU


@pytest.mark.parametrize("name", OWN)
def test_networks_of_detectors_stay_on_their_device(mode, name):
    recipe = create_recipe(name, **OWN[name])
    net = recipe.prepare(torch.nn.Identity(), TrainingFacts(class_names=(), n_train=8, size=8))
    rows = torch.arange(4)
    shown = Batch(torch.rand(4, 3, 8, 8), rows, rows, draws=torch.Generator(), scale=SCALE)
    if recipe.can_be_recorded():
        assert stepped(mode, recipe, net, shown).loss.device.type == GPU
    else:
        with pytest.raises((DataDependentOutputException, DynamicOutputShapeException)):
            stepped(mode, recipe, net, shown)


def test_what_asks_the_host_is_found(mode):
    class Asking(NoiseTraining):
        def loss(self, model, batch):
            step = super().loss(model, batch)
            return step._replace(loss=step.loss * float(step.loss.detach()))

    _, net, shown = prepared("noise")
    with pytest.raises(DataDependentOutputException):
        stepped(mode, Asking(), net, shown)


def test_what_was_made_on_the_host_is_found(mode):
    class Lost(NoiseTraining):
        def loss(self, model, batch):
            step = super().loss(model, batch)
            return step._replace(loss=(step.logits * torch.ones(len(step.logits), 1)).sum())

    _, net, shown = prepared("noise")
    with pytest.raises(RuntimeError, match="device"):
        stepped(mode, Lost(), net, shown)


@pytest.mark.parametrize("kind", KINDS)
def test_views_stay_on_their_device(mode, kind):
    augment = create_recipe("cross_entropy", augment=[kind]).augment
    pixels = torch.randint(256, (6, 3, 16, 16), dtype=torch.uint8)
    with mode:
        made = augment(moved(mode, pixels), torch.Generator())
    assert made.device.type == GPU
