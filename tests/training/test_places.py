"""A step makes and mixes no tensors of the host: every method and augmentation where all tensors lie on another device.

No GPU is needed: the tensors have shapes and a device, but no numbers, and torch refuses an operation on tensors of two
devices as it would with CUDA. What asks for a number is refused too, so this finds whatever no GPU could record.
"""

from contextlib import contextmanager, nullcontext

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.optim import SGD, Adam
from torch.overrides import TorchFunctionMode

import oodscope.training.methods.cider as cider
from oodscope.training.augment.fractals import draw_fractals
from oodscope.training.augment.operations import constants
from oodscope.training.augment.reading import KINDS, read_augment
from oodscope.training.loop.lars import LARS
from oodscope.training.loop.parts import Parts
from oodscope.training.loop.replay import rates_on_device
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.distill import opened
from oodscope.training.recipe import Batch, TrainingFacts
from oodscope.training.registry import create_recipe
from tests.training.every_method import FAST, MADE, SCALE, prepared

ELSEWHERE = torch.device("meta")
"""Stands for a GPU: it has gradients without a driver."""

FORMS = [(name, {"queue": 40} if name == "npos" else {}) for name in MADE] + [
    ("godin", {"similarity": "euclid"}),
    ("godin", {"similarity": "inner"}),
    ("csi", {"parity": True}),
    ("mos", {"parity": True}),
    ("mos", {"alpha": 0.0}),
    ("npos", {"parity": True, "queue": 40}),
    ("mcd", {"parity": True}),
    ("ascood", {"spoil": "gradient"}),
    ("distill", {"temperature": 2.0, "labels": 0.5}),
]
"""All methods, and their other forms."""

OWN = {
    "autoencoder": {"width": 4, "code": 4},
    "glow": {"levels": 2, "flow_steps": 1, "width": 4},
    "pixelcnn": {"filters": 4, "blocks": 1, "resolutions": 2, "mixtures": 2},
}
"""Networks of detectors; the chains of ``nae`` ask for numbers, and it is never recorded."""


class Draws(torch.Generator):
    """Random numbers of the other device."""

    device = property(lambda self: ELSEWHERE)


class Undrawn(TorchFunctionMode):
    """Random numbers have no values there, so that their generator does not matter."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        given = dict(kwargs or {})
        given.pop("generator", None)
        return func(*args, **given)


@contextmanager
def elsewhere(monkeypatch):
    """Inside, tensors have a device and no numbers; autocast, which does not know this device, is off."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *_: False)
    try:
        with FakeTensorMode(), Undrawn():
            yield
    finally:
        for kept in (constants, draw_fractals, opened):  # what a process keeps for each device
            kept.cache_clear()


def moved(tensor):
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=ELSEWHERE)


def moved_network(net):
    for module in net.modules():
        for name, value in module._parameters.items():
            if value is not None:
                module._parameters[name] = nn.Parameter(moved(value), requires_grad=value.requires_grad)
        for name, value in module._buffers.items():
            if value is not None:
                module._buffers[name] = moved(value)
    return net


def moved_batch(batch):
    tensors = {name: moved(value) for name, value in batch._asdict().items() if isinstance(value, torch.Tensor)}
    ood = None if batch.ood is None else moved_batch(batch.ood)
    scale = None if batch.scale is None else type(batch.scale)(*map(moved, batch.scale))
    return batch._replace(**tensors, ood=ood, scale=scale, draws=Draws())


def stepped(recipe, net, shown):
    """One whole step there: loss, gradients, and the step of the optimiser."""
    net, shown = moved_network(net), moved_batch(shown)
    loss = recipe.loss(net, shown).loss
    loss.backward()
    recipe.optimizer(net).step()
    return loss


@pytest.mark.parametrize(("name", "more"), FORMS, ids=lambda each: each if isinstance(each, str) else "-".join(each))
def test_a_step_stays_on_its_device(name, more, monkeypatch):
    recipe, net, shown = prepared(name, **more)
    if not recipe.can_be_recorded():
        # how many rounds the prototypes take is read off the labels: these methods are never recorded
        monkeypatch.setattr(cider, "follow", lambda prototypes, embedding, *_: prototypes.clone() * embedding.sum())
    # a teacher's file has numbers, so it is opened before; the step must ask for the teacher of its own device
    teachers = opened(recipe.teachers, ELSEWHERE) if name == "distill" else ()
    with elsewhere(monkeypatch):
        for each in teachers:
            moved_network(each)
        assert stepped(recipe, net, shown).device == ELSEWHERE


@pytest.mark.parametrize("name", OWN)
def test_networks_of_detectors_stay_on_their_device(name, monkeypatch):
    recipe = create_recipe(name, **OWN[name])
    net = recipe.prepare(nn.Identity(), TrainingFacts(class_names=(), n_train=8, size=8))
    rows = torch.arange(4)
    shown = Batch(torch.rand(4, 3, 8, 8), rows, rows, draws=torch.Generator(), scale=SCALE)
    with elsewhere(monkeypatch):
        assert stepped(recipe, net, shown).device == ELSEWHERE


@pytest.mark.parametrize("name", [*KINDS, "chain"])
def test_an_augmentation_stays_on_its_device(name, monkeypatch):
    augment = read_augment([*KINDS] if name == "chain" else name)
    with elsewhere(monkeypatch):
        pixels = torch.empty(8, 3, 12, 12, dtype=torch.uint8, device=ELSEWHERE)
        found = augment(pixels, Draws())
        assert found.device == ELSEWHERE and augment.after_scaling(found.float(), Draws()).device == ELSEWHERE


class Forgetful(CrossEntropy):
    """A loss with a tensor of the host."""

    def loss(self, model, batch):
        step = super().loss(model, batch)
        return step._replace(loss=step.loss * torch.ones(2).sum().to(batch.images.device) + self.wrong(batch).sum())

    def wrong(self, batch):
        return batch.images.flatten(1) * torch.ones(len(batch.images), 1)


class Curious(CrossEntropy):
    """A loss that asks for a number."""

    def loss(self, model, batch):
        step = super().loss(model, batch)
        return step._replace(loss=step.loss * float(batch.labels.max()))


@pytest.mark.parametrize(("cls", "words"), [(Forgetful, "two devices"), (Curious, "_local_scalar_dense")])
def test_what_would_fail_on_a_gpu_fails_here(cls, words, monkeypatch):
    _, net, shown = prepared("cross_entropy")
    with elsewhere(monkeypatch), pytest.raises(Exception, match=words):
        stepped(cls(**FAST), net, shown)


class TestOptimisersOnTheDevice:
    """What a recording needs of an optimiser: rates that are tensors there, and all its memory from the first step."""

    def made(self, device):
        weights = [nn.Parameter(torch.empty(3, 2, device=device)) for _ in range(4)]
        main = SGD([{"params": [weights[0]]}, {"params": [weights[1]], "lr": 0.01}], lr=0.1, momentum=0.9)
        return Parts([main, Adam([weights[2]], lr=0.001), LARS([weights[3]], lr=1.0)])

    def test_every_part_gets_its_rates(self):
        device = torch.device("cuda", 0)
        with FakeTensorMode():
            optimizer = self.made(device)
            rates = rates_on_device(optimizer, device)
            assert rates is not None and [rate.device for rate in rates] == [device] * 4
            assert [group["lr"] for group in optimizer.param_groups] == rates, "the groups are those of the parts"
            sgd, adam, lars = optimizer.parts
            assert all(group["lr"] is rate for group, rate in zip(sgd.param_groups, rates))
            assert all(sgd.state[each]["momentum_buffer"].device == device for group in sgd.param_groups
                       for each in group["params"])  # fmt: skip
            assert adam.param_groups[0]["capturable"] and adam.param_groups[0]["fused"]
            assert "fused" not in lars.param_groups[0]

    def test_an_unknown_optimiser_is_taken_plainly(self):
        weight = nn.Parameter(torch.zeros(2))
        assert rates_on_device(Parts([torch.optim.RMSprop([weight])]), torch.device("cuda", 0)) is None
        assert rates_on_device(SGD([weight], lr=0.1), torch.device("cpu")) is None

    def test_a_checkpoint_of_another_device_works_where_it_is_opened(self):
        torch.manual_seed(0)
        there, here = self.made("cpu"), self.made("cpu")
        for optimizer in (there, here):
            for group in optimizer.param_groups:
                for weight in group["params"]:
                    weight.data.fill_(1.0)
                    weight.grad = torch.ones_like(weight)
        there.step()
        saved = there.state_dict()
        for group in (*saved["param_groups"], *(group for part in saved["parts"] for group in part["param_groups"])):
            group.update(lr=torch.tensor(99.0), **({"fused": True} if "fused" in group else {}))
        here.load_state_dict(saved)
        assert [group["lr"] for group in here.param_groups] == [0.1, 0.01, 0.001, 1.0]
        assert not any(group.get("fused") for group in here.param_groups)
        assert torch.equal(*(each.parts[0].state[each.parts[0].param_groups[0]["params"][0]]["momentum_buffer"]
                             for each in (there, here)))  # fmt: skip

    def test_a_rate_that_is_a_tensor_takes_the_same_step(self):
        steps = []
        for rate in (0.3, torch.tensor(0.3)):
            weight = nn.Parameter(torch.arange(6.0).view(3, 2))
            weight.grad = torch.ones(3, 2)
            LARS([weight], lr=rate).step()
            steps.append(weight.detach())
        assert torch.equal(*steps)
