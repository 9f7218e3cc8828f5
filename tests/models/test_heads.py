"""A head counts as found only if features · Wᵀ + b equals the logits; otherwise a person is told why not."""

import pytest
import timm
import torch
import torchvision
from torch import Tensor, nn

from oodscope.base.errors import ModelError, UnknownNameError
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.head import Head

torch.set_num_threads(1)

TORCHVISION = [
    ("resnet18", 32, "fc", 512, {}),
    ("convnext_tiny", 32, "classifier.2", 768, {}),
    ("vit_b_16", 32, "heads.head", 768, {"image_size": 32}),
    ("mobilenet_v3_small", 32, "classifier.3", 1024, {}),
    ("efficientnet_b0", 32, "classifier.1", 1280, {}),
    ("densenet121", 32, "classifier", 1024, {}),
    ("swin_t", 32, "head", 768, {}),
    ("regnet_y_400mf", 32, "fc", 440, {}),
]
TIMM = [
    ("resnet18", 32, "fc", 512, {}),
    ("vit_tiny_patch16_224", 32, "head", 192, {"img_size": 32}),
    ("convnext_atto", 32, "head.fc", 320, {}),
    ("mobilenetv3_small_100", 32, "classifier", 1024, {}),
    ("efficientnet_b0", 32, "classifier", 1280, {}),
    ("resnetv2_50", 32, "head.fc", 2048, {}),  # a 1x1 convolution on pooled features
    ("swin_tiny_patch4_window7_224", 56, "head.fc", 768, {"img_size": 56}),
    ("regnety_002", 32, "head.fc", 368, {}),
    ("edgenext_xx_small", 64, "head.fc", 168, {}),
    ("hardcorenas_a", 32, "classifier", 1280, {}),
    ("mobilevit_xs", 64, "head.fc", 384, {}),
    ("poolformer_s12", 32, "head.fc", 512, {}),
]
AVERAGES = [
    ("deit_tiny_distilled_patch16_224", 32, "'head' and 'head_dist'", {"img_size": 32}),
    ("levit_128s", 224, "'head.linear' and 'head_dist.linear'", {}),
]


def classify(model: nn.Module, size: int, **options: object) -> Classifier:
    torch.manual_seed(0)
    for module in model.modules():  # some libraries start with a head of zeros, which proves nothing
        if isinstance(module, nn.Linear) and not module.weight.any():
            nn.init.normal_(module.weight)
    return Classifier(model, Preprocess(size=size), device="cpu", **options)  # type: ignore[arg-type]


def hooks(model: nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def check_found(classifier: Classifier, size: int, path: str, dim: int) -> None:
    assert classifier.head_path == path, classifier.head_reason
    assert classifier.head is not None
    assert (classifier.head.num_classes, classifier.head.dim) == (classifier.num_classes, dim)
    fresh = torch.rand(3, 3, size, size, generator=torch.Generator().manual_seed(7))
    logits, features = classifier.forward(fresh)
    with torch.no_grad():
        torch.testing.assert_close(logits, classifier.model.eval()(fresh))
    assert features is not None
    scale = float(logits.abs().max())
    rebuilt = features @ classifier.head.weight.T + classifier.head.bias
    torch.testing.assert_close(rebuilt, logits, atol=1e-5 * scale, rtol=1e-5)
    assert hooks(classifier.model) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size", "path", "dim", "options"), TORCHVISION, ids=[row[0] for row in TORCHVISION])
def test_torchvision_heads(name: str, size: int, path: str, dim: int, options: dict[str, int]) -> None:
    torch.manual_seed(0)
    model = torchvision.models.get_model(name, weights=None, num_classes=20, **options)
    check_found(classify(model, size), size, path, dim)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size", "path", "dim", "options"), TIMM, ids=[row[0] for row in TIMM])
def test_timm_heads(name: str, size: int, path: str, dim: int, options: dict[str, int]) -> None:
    torch.manual_seed(0)
    check_found(classify(timm.create_model(name, num_classes=20, **options), size), size, path, dim)


@pytest.mark.parametrize(("name", "size", "layers", "options"), AVERAGES, ids=[row[0] for row in AVERAGES])
def test_an_average_of_two_heads_is_recognised(name: str, size: int, layers: str, options: dict[str, int]) -> None:
    torch.manual_seed(0)
    classifier = classify(timm.create_model(name, num_classes=20, **options), size)
    assert classifier.head is None
    assert classifier.head_reason == f"the logits are the average of two linear layers {layers}"
    assert classifier.forward(torch.rand(2, 3, size, size)).features is None


def test_squeezenet_ends_in_a_convolution_and_pooling() -> None:
    torch.manual_seed(0)
    classifier = classify(torchvision.models.squeezenet1_1(num_classes=20), 64)
    assert classifier.head is None
    assert classifier.head_reason == "the last layer 'classifier.1' is a convolution followed by pooling"
    assert "read logits" in classifier.describe()


class Tail(nn.Module):
    """A little network whose last step is the test's choice."""

    def __init__(self, tail: str) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 16), nn.ReLU())
        self.fc = nn.Linear(16, 5)
        self.other = nn.Linear(16, 5)
        self.scale = nn.Parameter(torch.tensor(0.01))
        self.tail = tail

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.body(images)
        other, logits = self.other(hidden), self.fc(hidden)
        match self.tail:
            case "plain":
                return logits
            case "first":
                return other
            case "temperature":
                return logits / 2
            case "small addition":
                return logits + self.scale * other.sin()
            case "functional":
                return hidden @ self.fc.weight.T + self.scale * logits.tanh()
            case "in place afterwards":
                hidden.zero_()
                return logits
        raise AssertionError(self.tail)


def test_the_layer_that_yields_the_logits_wins_not_the_last_or_the_best_named() -> None:
    assert classify(Tail("plain"), 8).head_path == "fc"
    assert classify(Tail("first"), 8).head_path == "other"


@pytest.mark.parametrize("tail", ["temperature", "small addition", "functional"])
def test_whatever_follows_the_last_layer_disqualifies_it(tail: str) -> None:
    classifier = classify(Tail(tail), 8)
    assert classifier.head is None
    assert classifier.head_reason.startswith("no linear layer produces the logits")


def test_features_survive_a_network_that_works_in_place() -> None:
    classifier = classify(Tail("in place afterwards"), 8)
    logits, features = classifier.forward(torch.rand(2, 3, 8, 8))
    assert classifier.head is not None and features is not None
    torch.testing.assert_close(classifier.head.logits(features), logits)


class Tokens(nn.Module):
    """A linear layer over all tokens, then the mean of its answers or the first of them."""

    def __init__(self, keep: str) -> None:
        super().__init__()
        self.embed, self.fc = nn.Conv2d(3, 16, 4, stride=4), nn.Linear(16, 5)
        self.keep = keep

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.embed(images).flatten(2).transpose(1, 2).relu()
        logits: Tensor = self.fc(tokens)
        return logits.mean(1) if self.keep == "mean" else logits[:, 0]


def test_a_layer_over_tokens_is_no_head_and_what_follows_is_named() -> None:
    pooled = classify(Tokens("mean"), 16).head_reason
    assert pooled == "the last layer 'fc' is applied to every token and followed by pooling"
    # the attention pooling of CLIP's ResNets ends like this
    picked = classify(Tokens("first"), 16).head_reason
    assert picked == "the last layer 'fc' is applied to every token, and one token's answer is kept"


def test_a_plain_sequential_and_a_lone_layer() -> None:
    mlp = nn.Sequential(nn.Flatten(), nn.Linear(192, 32), nn.ReLU(), nn.Linear(32, 4, bias=False))
    classifier = classify(mlp, 8)
    assert classifier.head_path == "3"
    assert classifier.head is not None and not classifier.head.bias.any()

    class Lone(nn.Linear):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images.flatten(1))

    lone = classify(Lone(192, 4), 8)
    assert lone.head_path == ""
    assert "the network itself" in lone.describe()


def test_a_parametrised_layer_is_read_as_it_acts() -> None:
    model = nn.Sequential(nn.Flatten(), nn.utils.parametrizations.weight_norm(nn.Linear(192, 4)))
    classifier = classify(model, 8)
    assert classifier.head_path == "1"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_networks_are_proved_at_full_precision(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = Tail("plain").to(dtype)
    classifier = classify(model, 8)
    assert classifier.head_path == "fc"
    assert classifier.head_deviation is not None and classifier.head_deviation < 1e-5
    assert model.fc.weight.dtype is dtype
    logits, features = classifier.forward(torch.rand(2, 3, 8, 8))
    assert features is not None and logits.dtype is features.dtype is torch.float32


def test_a_named_head_must_pass_the_same_proof() -> None:
    assert classify(Tail("plain"), 8, head="fc").head_path == "fc"
    wrong = classify(Tail("plain"), 8, head="other")
    with pytest.raises(ModelError, match=r"head='other' does not produce the logits.*by \d[\d.]* times their spread"):
        _ = wrong.head
    narrow = classify(Tail("plain"), 8, head="body.1")
    with pytest.raises(ModelError, match="does not map one feature vector per image to 5 values"):
        narrow.forward(torch.rand(2, 3, 8, 8))
    with pytest.raises(UnknownNameError, match=r"unknown module 'fcc'\. Did you mean 'fc'"):
        classify(Tail("plain"), 8, head="fcc")


def test_logits_that_do_not_vary_prove_nothing() -> None:
    dead = Tail("plain")
    nn.init.zeros_(dead.fc.weight)
    classifier = Classifier(dead, Preprocess(size=8), device="cpu")
    assert classifier.head is None
    assert "the same for all noise images" in classifier.head_reason
    nn.init.constant_(dead.fc.weight, float("nan"))
    assert "not finite" in Classifier(dead, Preprocess(size=8), device="cpu").head_reason


class Faint(Tail):
    """Its logits vary by a millionth of their size, as those of deep networks before training may."""

    def __init__(self, table: Tensor | None = None) -> None:
        torch.manual_seed(0)
        super().__init__("plain")
        nn.init.normal_(self.fc.weight, std=1e-7)
        nn.init.ones_(self.fc.bias)
        self.table = [] if table is None else [table]

    def forward(self, images: Tensor) -> Tensor:
        for table in self.table:
            images = images @ table
        return super().forward(images)


def test_logits_that_hardly_vary_are_proved_in_double_precision() -> None:
    model = Faint()
    classifier = Classifier(model, Preprocess(size=8), device="cpu")
    assert classifier.head_path == "fc", classifier.head_reason
    assert classifier.head_deviation is not None and classifier.head_deviation < 1e-6
    assert model.fc.weight.dtype is torch.float32
    assert classifier.forward(torch.rand(2, 3, 8, 8)).logits.dtype is torch.float32
    assert Classifier(Faint(), Preprocess(size=8), device="cpu", head="fc").head_path == "fc"


def test_a_network_that_cannot_run_in_double_precision_is_told_why_it_has_no_head() -> None:
    classifier = Classifier(Faint(torch.eye(8)), Preprocess(size=8), device="cpu")
    assert classifier.head is None
    assert "too little for a proof" in classifier.head_reason


def test_the_search_leaves_the_network_as_it_was() -> None:
    model = Tail("plain").train()
    model.body.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    assert Classifier(model, Preprocess(size=8), device="cpu").head_path == "fc"
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


def test_hooks_are_removed_even_if_the_network_fails() -> None:
    model = Tail("plain").train()
    with pytest.raises(ModelError, match=r"Tail fails on a batch of shape \[4, 3, 9, 9\]"):
        _ = Classifier(model, Preprocess(size=9), device="cpu").head
    assert hooks(model) == 0 and model.training


def test_head_checks_its_numbers() -> None:
    head = Head(torch.eye(2, 3), torch.tensor([1.0, -1.0]))
    torch.testing.assert_close(head.logits(torch.tensor([[2.0, 3.0, 5.0]])), torch.tensor([[3.0, 2.0]]))
    assert Head(torch.ones(2, 3, dtype=torch.float16)).weight.dtype is torch.float32
    assert torch.equal(Head(torch.ones(2, 3)).bias, torch.zeros(2))
    with pytest.raises(ModelError, match=r"\[classes, features\], got shape \[3\]"):
        Head(torch.ones(3))
    with pytest.raises(ModelError, match="2 classes has a bias of shape"):
        Head(torch.ones(2, 3), torch.ones(3))
    with pytest.raises(ModelError, match="bias holds NaN"):
        Head(torch.ones(2, 3), torch.tensor([0.0, float("nan")]))
    with pytest.raises(ModelError, match=r"3 features cannot read shape \[1, 4\]"):
        head.logits(torch.ones(1, 4))
