"""A classifier is any network: one pass per batch, its own preprocessing, an identity that never lies."""

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchvision import transforms
from torchvision.transforms import v2

from oodscope.base.errors import ModelError, UsageError
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.head import Head
from oodscope.models.small.cnn import small_cnn

torch.set_num_threads(1)


class Net(nn.Module):
    """Batch norm and dropout, so that evaluation mode matters; ``wrap`` decides what forward returns."""

    def __init__(
        self, wrap: Callable[[Tensor], Any] = lambda logits: logits, classes: int = 5, channels: int = 3
    ) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, 8, 3),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.fc = nn.Linear(8, classes)
        self.temperature = 1.0
        self.wrap = wrap

    def forward(self, images: Tensor) -> Any:
        return self.wrap(self.fc(self.body(images)))


def net(**options: Any) -> Net:
    torch.manual_seed(0)
    return Net(**options)


SQUARE = Preprocess(size=12)


def on_cpu(model: nn.Module, transform: Any = SQUARE, **options: Any) -> Classifier:
    return Classifier(model, transform, device="cpu", **options)


def pictures(count: int = 3, side: int = 12, channels: int = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return list(rng.integers(0, 256, (count, side, side, channels), dtype=np.uint8))


@pytest.fixture
def batch() -> Tensor:
    return torch.randn(6, 3, 12, 12, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda logits: logits,
        lambda logits: {"logits": logits, "confidence": logits[:, :1]},
        lambda logits: SimpleNamespace(logits=logits, hidden_states=()),
        lambda logits: (logits, logits * 2),
    ],
    ids=["tensor", "dict", "object", "tuple"],
)
def test_every_usual_kind_of_output_is_read(wrap: Callable[[Tensor], Any], batch: Tensor) -> None:
    plain = net().eval()
    logits, features = on_cpu(net(wrap=wrap)).forward(batch)
    with torch.no_grad():
        torch.testing.assert_close(logits, plain(batch))
        torch.testing.assert_close(features, plain.body(batch))


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (lambda logits: {"out": logits}, "a dict without 'logits'; its keys are 'out'"),
        (lambda logits: "cat", "returns a str"),
        (lambda logits: logits[:, :, None], r"into shape \[4, 5, 1\]; needed: \[4, classes\]"),
        (lambda logits: logits[:2], r"4 images into shape \[2, 5\]"),
        (lambda logits: logits[:, :1], "one class only"),
    ],
)
def test_outputs_that_are_no_logits_are_refused(wrap: Callable[[Tensor], Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        _ = on_cpu(net(wrap=wrap)).num_classes


def test_forward_is_exactly_one_pass(batch: Tensor) -> None:
    classifier = on_cpu(net())
    passes: list[int] = []
    classifier.model.register_forward_hook(lambda _, inputs, __: passes.append(len(inputs[0])))
    _ = classifier.head
    assert passes == [4], "the search is one pass over four noise images"
    passes.clear()
    classifier.forward(batch)
    classifier.forward(batch[:1])
    classifier.forward(batch, grad=True)
    _ = classifier.head, classifier.num_classes, classifier.fingerprint, classifier.describe()
    assert passes == [6, 1, 6]


def test_forward_without_transform_seeks_the_head_on_noise_like_the_batch(batch: Tensor) -> None:
    classifier = on_cpu(net(), None)
    assert classifier.forward(torch.zeros(1, 3, 12, 12)).features is not None
    torch.testing.assert_close(classifier.forward(batch), on_cpu(net()).forward(batch))


def test_forward_runs_in_evaluation_mode_and_gives_the_network_back(batch: Tensor) -> None:
    model = net().train()
    model.body[1].eval()
    modes = [module.training for module in model.modules()]
    statistics = model.body[1].running_mean.clone()
    classifier = on_cpu(model)
    first, second = classifier.forward(batch), classifier.forward(batch)
    assert torch.equal(first.logits, second.logits), "dropout is off"
    assert not first.logits.requires_grad
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(model.body[1].running_mean, statistics)


def test_gradients_with_respect_to_the_input_equal_plain_autograd(batch: Tensor) -> None:
    model = net()
    oracle = copy.deepcopy(model).eval()
    theirs = batch.clone().requires_grad_()
    oracle(theirs).logsumexp(1).sum().backward()

    ours = batch.clone().requires_grad_()
    outputs = on_cpu(model).forward(ours, grad=True)
    outputs.logits.logsumexp(1).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert theirs.grad is not None and theirs.grad.abs().sum() > 0
    assert outputs.features is not None and outputs.features.requires_grad
    assert all(weight.grad is None and weight.requires_grad for weight in model.parameters())


def test_gradients_also_under_no_grad(batch: Tensor) -> None:
    with torch.no_grad():
        assert on_cpu(net()).forward(batch.clone().requires_grad_(), grad=True).logits.requires_grad


def test_a_given_head_reads_the_output_as_features(batch: Tensor) -> None:
    tower = net().body
    head = Head(torch.randn(7, 8), torch.randn(7))
    classifier = on_cpu(tower, head=head)
    logits, features = classifier.forward(batch)
    with torch.no_grad():
        expected = tower.eval()(batch)
    torch.testing.assert_close(features, expected)
    torch.testing.assert_close(logits, expected @ head.weight.T + head.bias)
    assert (classifier.num_classes, classifier.head_path, classifier.head_reason) == (7, None, "")
    assert classifier.head is not None and torch.equal(classifier.head.weight, head.weight)
    assert classifier.fingerprint != on_cpu(tower, head=Head(head.weight * 2, head.bias)).fingerprint
    with pytest.raises(ModelError, match=r"4 features cannot read shape \[6, 8\]"):
        on_cpu(tower, head=Head(torch.ones(3, 4))).forward(batch)


def test_the_head_is_read_anew_and_is_a_copy() -> None:
    classifier = on_cpu(net())
    before = classifier.head
    with torch.no_grad():
        classifier.model.fc.weight.add_(1)
    after = classifier.head
    assert before is not None and after is not None
    torch.testing.assert_close(after.weight, before.weight + 1)


def test_images_of_another_size_cannot_pass_for_features() -> None:
    class Convolutional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.last = nn.Conv2d(3, 8, 12), nn.Conv2d(8, 5, 1)

        def forward(self, images: Tensor) -> Tensor:
            logits: Tensor = self.last(self.body(images).relu()).mean((2, 3))
            return logits

    classifier = on_cpu(Convolutional())
    assert classifier.head_path == "last"
    with pytest.raises(ModelError, match="not one vector of features per image"):
        classifier.forward(torch.rand(2, 3, 20, 20))


# transforms ------------------------------------------------------------------------------------------


def compose(*steps: Any) -> transforms.Compose:
    return transforms.Compose([transforms.Resize(12), transforms.CenterCrop(12), transforms.ToTensor(), *steps])


def test_preprocess_and_the_same_torchvision_transform_agree() -> None:
    ours = Preprocess(size=12, mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4))
    theirs = compose(transforms.Normalize((0.4, 0.5, 0.6), (0.2, 0.3, 0.4)))
    images = pictures(side=20)
    batches = [on_cpu(net(), transform).prepare(images) for transform in (ours, theirs)]
    torch.testing.assert_close(*batches)
    assert batches[0].shape == (3, 3, 12, 12)


def test_transform_keys_are_equal_for_equal_transforms_only() -> None:
    def key(transform: Any) -> str:
        return on_cpu(net(), transform).transform_key

    assert key(Preprocess(size=12)) == Preprocess(size=12).key
    assert key(compose()) == key(compose())
    assert key(compose()) != key(compose(transforms.Normalize((0.5,) * 3, (0.5,) * 3)))
    # torchvision prints neither the fifth digit of a tensor nor the type of ToDtype
    means = [torch.tensor([0.48501, 0.5, 0.5]), torch.tensor([0.48502, 0.5, 0.5])]
    a, b = (compose(transforms.Normalize(mean, torch.ones(3))) for mean in means)
    assert repr(a) == repr(b) and key(a) != key(b)


@pytest.mark.parametrize(
    "make",
    [
        lambda: lambda picture: torch.full((3, 12, 12), 0.5),
        lambda: compose(transforms.Lambda(lambda tensor: tensor)),
        lambda: v2.Compose([v2.PILToTensor(), v2.ToDtype(torch.float32), v2.Lambda(lambda tensor: tensor)]),
        lambda: compose(transforms.RandomHorizontalFlip()),
    ],
    ids=["lambda", "torchvision Lambda", "v2 Lambda", "random"],
)
def test_a_transform_without_identity_is_never_cached(make: Callable[[], Any]) -> None:
    transform = make()
    first, second = on_cpu(net(), transform), on_cpu(net(), transform)
    assert first.transform_key == first.transform_key
    assert first.transform_key != second.transform_key
    assert first.uncached_reason in first.describe()
    assert "not shared between runs" in first.describe()


def test_pictures_are_converted_to_what_the_network_sees() -> None:
    grey, colour = pictures(1, channels=1)[0], pictures(1)[0]
    assert on_cpu(net(), compose()).prepare([grey, grey[:, :, 0], colour]).shape == (3, 3, 12, 12)
    assert on_cpu(net(channels=1), compose()).prepare([grey, colour]).shape == (2, 1, 12, 12)


def test_the_head_is_found_even_if_the_transform_keeps_the_size() -> None:
    flat = nn.Sequential(nn.Flatten(), nn.Linear(3 * 28 * 28, 16), nn.ReLU(), nn.Linear(16, 4))
    assert on_cpu(flat, transforms.ToTensor()).head_path == "3"


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (lambda picture: picture, "returns a Image; end it with ToTensor"),
        (transforms.ToTensor(), "tensors of different shapes; add Resize"),
        (
            transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,) * 7, (1,) * 7)]),
            "fails on a RGB picture",
        ),
    ],
)
def test_transforms_that_cannot_work_are_refused_in_one_line(transform: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        on_cpu(net(), transform).prepare([*pictures(1), *pictures(1, side=14)])
    assert "\n" not in str(caught.value)


def test_without_transform_the_benchmark_offers_its_own() -> None:
    bare = on_cpu(net(), None)
    with pytest.raises(ModelError, match="Net has no transform: pass --transform .*in Python transform=Preprocess"):
        bare.prepare(pictures())
    assert "not sought, because there is no transform" in bare.describe()
    offered = bare.with_default_transform(Preprocess(size=12))
    assert offered.transform == Preprocess(size=12) and bare.transform is None
    assert offered.model is bare.model
    assert offered.with_default_transform(Preprocess(size=20)) is offered
    assert bare.with_default_transform(None) is bare


# identity --------------------------------------------------------------------------------------------


def test_fingerprint_follows_the_weights_and_nothing_else(batch: Tensor) -> None:
    classifier = on_cpu(net())
    first = classifier.fingerprint
    classifier.forward(batch)
    classifier.model.train()
    classifier.model.eval()
    assert classifier.fingerprint == first == on_cpu(net()).fingerprint == on_cpu(copy.deepcopy(net())).fingerprint
    fresh = Net()
    fresh.load_state_dict(net().state_dict())
    assert on_cpu(fresh).fingerprint == first


@pytest.mark.parametrize("change", ["in place", "behind autograd", "buffer", "setting", "type", "module"])
def test_fingerprint_notices(change: str) -> None:
    classifier = on_cpu(net())
    before, model = classifier.fingerprint, classifier.model
    match change:
        case "in place":
            with torch.no_grad():
                model.fc.weight[0, 0] += 1e-6
        case "behind autograd":
            model.fc.weight.data[0, 0] += 1e-6  # version counters do not see this
        case "buffer":
            model.body[1].running_var.mul_(1.01)
        case "setting":
            model.temperature = 2.0
        case "type":
            model.double()
        case "module":
            model.body[2] = nn.GELU()
    assert classifier.fingerprint != before


def test_fingerprint_holds_the_head_path() -> None:
    class TwoPaths(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Flatten(), nn.Linear(432, 5))
            self.second = nn.Linear(5, 5, bias=False)
            nn.init.eye_(self.second.weight)

        def forward(self, images: Tensor) -> Tensor:
            logits: Tensor = self.second(self.first(images))
            return logits

    model = TwoPaths()
    assert on_cpu(model).head_path == "second"
    assert on_cpu(model).fingerprint != on_cpu(model, head="first.1").fingerprint


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_gives_the_same_identity_and_the_same_head(batch: Tensor) -> None:
    cpu, cuda = on_cpu(net()), Classifier(net(), Preprocess(size=12), device="cuda")
    assert cpu.fingerprint == cuda.fingerprint
    outputs = cuda.forward(batch)
    assert outputs.logits.device.type == "cuda"
    torch.testing.assert_close(outputs.logits.cpu(), cpu.forward(batch).logits, atol=1e-3, rtol=1e-3)
    assert cuda.head is not None and cuda.head.weight.device.type == "cpu"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_proves_a_convolutional_head_although_convolutions_round_to_tf32() -> None:
    torch.manual_seed(0)
    wide = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Conv2d(512, 100, 1), nn.Flatten())
    before = torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    assert Classifier(wide, SQUARE, device="cuda").head_path == "3"
    assert (torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()) == before


# edges -----------------------------------------------------------------------------------------------


def test_devices_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert Classifier(net()).device.type == "cpu"
    with pytest.raises(ModelError, match=r"device 'cuda' is not there.*Use device='auto'") as caught:
        Classifier(net(), device="cuda")
    assert "\n" not in str(caught.value)
    with pytest.raises(ModelError, match="'mps' is not there"):
        Classifier(net(), device="mps")
    with pytest.raises(UsageError, match="unknown device 'gpu'"):
        Classifier(net(), device="gpu")


def test_only_modules_and_parallel_wrappers_of_them() -> None:
    with pytest.raises(ModelError, match=r"torch\.nn\.Module, not a function"):
        Classifier(lambda images: images)  # type: ignore[arg-type]
    model = net()
    assert on_cpu(nn.DataParallel(model)).model is model


def test_a_batch_that_the_network_cannot_take_is_one_line() -> None:
    classifier = on_cpu(net())
    with pytest.raises(ModelError, match=r"Net fails on a batch of shape \[2, 1, 12, 12\]") as caught:
        classifier.forward(torch.rand(2, 1, 12, 12))
    assert "\n" not in str(caught.value)


def test_description_and_repr() -> None:
    classifier = on_cpu(small_cnn(num_classes=6), Preprocess(size=32), name="mine")
    text = classifier.describe()
    assert "mine: SmallCNN" in text and "6 classes" in text
    assert "head: fc, 128 features; proved" in text
    assert "size=32" in text and "device: cpu" in text
    assert repr(classifier) == "Classifier('mine', device='cpu')"
