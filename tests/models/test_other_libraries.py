"""Networks of other libraries: built without network, refused where unsafe, explained where something is missing."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from oodscope.base.errors import ModelError, UnknownNameError
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.zoo.backbones import create_backbone, read_head
from oodscope.models.zoo.dinov2 import BACKBONES, TokenFeatures
from oodscope.models.zoo.zero_shot import PROMPTS
from oodscope.models.zoo.zoo import create_model
from tests.tiny_libraries import clip_architecture, clip_weights, hf_folder


class Bomb:
    """Unpickling this creates a file: the harmless sign that foreign code ran."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return Path.touch, (self.target,)


@pytest.mark.parametrize(
    ("spec", "module", "extra"), [("hf:x", "transformers", "hf"), ("open_clip:RN50/openai", "open_clip", "clip")]
)
def test_a_missing_extra_is_one_line(spec, module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModelError) as caught:
        create_model(spec, weights="pretrained", class_names=["cat", "dog"])
    assert str(caught.value) == f"{spec} needs {module}, which is not installed: pip install 'oodscope[{extra}]'"


# Hugging Face ------------------------------------------------------------------------------------------


def test_hf_networks_bring_weights_and_processor(tmp_path):
    pytest.importorskip("transformers")
    saved = hf_folder(tmp_path / "vit")
    model, transform = create_model(f"hf:{tmp_path / 'vit'}", weights="pretrained")
    assert all(torch.equal(value, saved.state_dict()[name]) for name, value in model.state_dict().items())
    classifier = Classifier(model, transform, device="cpu")
    assert classifier.uncached_reason == ""
    picture = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    batch = classifier.prepare([picture, picture])
    assert batch.shape == (2, 3, 16, 16)
    with torch.no_grad():
        torch.testing.assert_close(classifier.forward(batch).logits, saved.eval()(batch).logits)
    with pytest.raises(ModelError, match="the pretrained weights have 4 classes, not 7"):
        create_model(f"hf:{tmp_path / 'vit'}", weights="pretrained", num_classes=7)
    untrained = create_model(f"hf:{tmp_path / 'vit'}", num_classes=7)
    assert Classifier(*untrained, device="cpu").num_classes == 7
    save_file(saved.state_dict(), tmp_path / "w.safetensors")
    assert create_model(f"hf:{tmp_path / 'vit'}", weights=tmp_path / "w.safetensors").transform is not None


def test_pickled_hf_weights_are_refused(tmp_path):
    pytest.importorskip("transformers")
    hf_folder(tmp_path / "vit", safe=False)
    torch.save({"x": Bomb(tmp_path / "ran")}, tmp_path / "vit" / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"weights are pickled \(pytorch_model.bin\), and unpickling can run any code"):
        create_model(f"hf:{tmp_path / 'vit'}", weights="pretrained")
    assert not (tmp_path / "ran").exists()


def test_hf_without_network_is_one_line(monkeypatch):
    transformers = pytest.importorskip("transformers")

    def offline(*_, **__):
        raise OSError("We couldn't connect to the hub\nand a long tale")

    monkeypatch.setattr(transformers.AutoImageProcessor, "from_pretrained", offline)
    with pytest.raises(
        ModelError, match=r"hf:some/thing: the pretrained weights could not be downloaded \(We couldn't"
    ):
        create_model("hf:some/thing", weights="pretrained")


# open_clip ---------------------------------------------------------------------------------------------


def test_open_clip_logits_are_those_of_the_library(tmp_path):
    open_clip = pytest.importorskip("open_clip")
    weights, name = clip_weights(tmp_path), clip_architecture(tmp_path)
    model, transform = create_model(
        f"open_clip:{name}", weights=weights, class_names=["cat", "dog_house"], device="cpu"
    )
    whole, _, theirs = open_clip.create_model_and_transforms(name)
    whole.load_state_dict(load_file(weights))
    assert repr(transform) == repr(theirs)
    images = torch.rand(3, 3, 16, 16)
    tokens = open_clip.get_tokenizer(name)
    with torch.no_grad():
        rows = []
        for words in ("cat", "dog house"):
            each = whole.eval().encode_text(tokens([prompt.format(words) for prompt in PROMPTS]), normalize=True)
            rows.append(torch.nn.functional.normalize(each.mean(0), dim=0))
        expected = whole.logit_scale.exp() * whole.encode_image(images, normalize=True) @ torch.stack(rows).T
        torch.testing.assert_close(Classifier(model, transform, device="cpu").forward(images).logits, expected)


def test_open_clip_names_and_words(tmp_path):
    pytest.importorskip("open_clip")
    words = {"class_names": ["cat", "dog"]}
    with pytest.raises(UnknownNameError, match="unknown open_clip model 'ViT-B-33'. Did you mean 'ViT-B-3"):
        create_model("open_clip:ViT-B-33/openai", weights="pretrained", **words)
    with pytest.raises(UnknownNameError, match=r"weights of open_clip:ViT-B-32: 'opnai'\. Did you mean 'openai'"):
        create_model("open_clip:ViT-B-32/opnai", weights="pretrained", **words)
    with pytest.raises(UnknownNameError, match=r"Say open_clip:ViT-B-32/TAG with a TAG of: openai"):
        create_model("open_clip:ViT-B-32", weights="pretrained", **words)
    with pytest.raises(ModelError, match="classifies by words: say class_names"):
        create_model("open_clip:ViT-B-32/openai", weights="pretrained")
    torch.save({"x": Bomb(tmp_path / "ran")}, tmp_path / "w.pt")
    with pytest.raises(ModelError, match="can run any code"):
        create_model(f"open_clip:{clip_architecture(tmp_path)}", weights=tmp_path / "w.pt", **words)
    assert not (tmp_path / "ran").exists()


def test_published_clip_weights_get_their_own_activation_and_no_pickle(monkeypatch):
    open_clip = pytest.importorskip("open_clip")
    asked = {}

    def spy(name, **options):
        asked.update(options, name=name)
        raise RuntimeError("no network here")

    monkeypatch.setattr(open_clip, "create_model", spy)
    for tag, quick in (("openai", True), ("laion2b_s34b_b79k", False)):
        with pytest.raises(ModelError, match="could not be downloaded"):
            create_model(f"open_clip:ViT-B-32/{tag}", weights="pretrained", class_names=["cat", "dog"])
        assert (asked["pretrained"], asked["force_quick_gelu"], asked["weights_only"]) == (tag, quick, True)


@pytest.mark.parametrize("kind", ["dinov2", "siglip", "clip"])
def test_an_encoder_of_transformers_ends_in_its_image_embedding(tmp_path, kind):
    library = pytest.importorskip("transformers")
    torch.manual_seed(0)
    shared = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    vision, text = {**shared, "image_size": 16, "patch_size": 8}, {**shared, "vocab_size": 64}
    towers = {"text_config": text, "vision_config": vision}
    saved = {
        "dinov2": lambda: library.Dinov2Model(library.Dinov2Config(**vision)),
        "siglip": lambda: library.SiglipModel(library.SiglipConfig(**towers)),
        "clip": lambda: library.CLIPModel(library.CLIPConfig(**towers, projection_dim=8)),
    }[kind]().eval()
    saved.save_pretrained(tmp_path / "net")
    library.ViTImageProcessor(size={"height": 16, "width": 16}).save_pretrained(tmp_path / "net")
    model, transform = create_backbone(f"hf:{tmp_path / 'net'}", weights="pretrained")
    images = torch.rand(3, 3, 16, 16)
    with torch.no_grad():
        if kind == "dinov2":
            theirs = saved(pixel_values=images).last_hidden_state[:, 0]
        elif kind == "siglip":
            theirs = saved.vision_model(pixel_values=images).pooler_output
        else:
            theirs = saved.visual_projection(saved.vision_model(pixel_values=images).pooler_output)
        torch.testing.assert_close(model.eval()(images), theirs)
    bare = Classifier(model, transform, device="cpu", embedding=True)
    assert bare.head is None and bare.num_classes == theirs.shape[1]


# DINOv2 and heads from files ---------------------------------------------------------------------------


def test_dinov2_features_are_class_tokens_and_the_mean_patch():
    torch.manual_seed(0)
    vit = timm.create_model("test_vit", num_classes=0, img_size=32).eval()
    images = torch.rand(2, 3, 32, 32)
    last = []
    handles = [block.register_forward_hook(lambda _, __, out: last.append(out)) for block in vit.blocks]
    with torch.no_grad():
        vit.forward_features(images)
        normed = [vit.norm(tokens) for tokens in last]
        for handle in handles:
            handle.remove()
        for layers in (1, 4):
            ours = TokenFeatures(vit, layers)(images)
            tokens = [each[:, 0] for each in normed[-layers:]]
            torch.testing.assert_close(ours, torch.cat([*tokens, normed[-1][:, 1:].mean(1)], dim=1))


def test_dinov2_names_exist_in_timm():
    known = timm.list_models("*dinov2")
    assert sorted(BACKBONES.values()) == sorted(known)


def test_a_backbone_ends_in_features(tmp_path):
    torch.manual_seed(0)
    whole = timm.create_model("test_resnet", num_classes=0).eval()
    save_file({k: v.contiguous() for k, v in whole.state_dict().items()}, tmp_path / "w.safetensors")
    model, transform = create_backbone("timm:test_resnet", weights=tmp_path / "w.safetensors")
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(images), whole(images))
    assert transform is None
    with pytest.raises(ModelError, match="torchvision:resnet18 has a head of its own"):
        create_backbone("torchvision:resnet18")


def test_heads_from_files(tmp_path):
    weight, bias = torch.randn(3, 5), torch.randn(3)
    save_file({"linear.weight": weight, "linear.bias": bias}, tmp_path / "h.safetensors")
    head = read_head(tmp_path / "h.safetensors")
    assert torch.equal(head.weight, weight) and torch.equal(head.bias, bias)
    for content in ({"a.weight": weight, "b.weight": weight + 1}, {"bias": bias}, {"weight": weight, "scale": bias}):
        save_file(dict(content), tmp_path / "h.safetensors")
        with pytest.raises(ModelError, match="a head's file holds 'weight' and 'bias'"):
            read_head(tmp_path / "h.safetensors")


# tags --------------------------------------------------------------------------------------------------


def test_tags_name_one_of_several_published_weights(monkeypatch):
    asked = []
    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", lambda url, **__: asked.append(url))
    for tag in ("IMAGENET1K_V1", "IMAGENET1K_V2"):
        with pytest.raises(ModelError):
            create_model(f"torchvision:mobilenet_v2.{tag}", weights="pretrained")
    assert len(set(asked)) == 2
    assert create_model("torchvision:mobilenet_v2.IMAGENET1K_V1", num_classes=3).model.classifier[1].out_features == 3
    with pytest.raises(UnknownNameError, match="'IMAGENET1K_V3'. Did you mean 'IMAGENET1K_V"):
        create_model("torchvision:mobilenet_v2.IMAGENET1K_V3")
    with pytest.raises(UnknownNameError, match=r"unknown timm weights 'resnet18\.a1_in2k'\. Did you mean 'resnet18\.a"):
        create_model("timm:resnet18.a1_in2k")


# heads of whatever timm has ----------------------------------------------------------------------------

SMALL = [
    "convnext_zepto_rms", "efficientvit_b0", "fbnetc_100", "ghostnet_050", "lcnet_050", "mnasnet_small", "regnetx_002",
    "mobilenetv1_100", "mobilenetv4_conv_small", "repghostnet_050", "resnet10t", "test_byobnet", "test_convnext",
    "test_efficientnet", "test_mambaout", "test_nfnet", "test_resnet", "test_vit", "test_vit3", "tinynet_e",
]  # fmt: skip
"""Light networks of many families; ten are drawn. benchmarks/heads_found.py draws from all of timm."""


@pytest.mark.slow
@pytest.mark.parametrize("name", random.Random(0).sample(SMALL, 10))
def test_the_head_is_found_without_help(name):
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=11)
    for module in model.modules():
        if isinstance(module, nn.Linear) and not module.weight.any():
            nn.init.normal_(module.weight)
    side = timm.get_pretrained_cfg(name).input_size[-1]
    classifier = Classifier(model, Preprocess(size=side), device="cpu")
    assert classifier.head is not None, classifier.head_reason
    assert classifier.head.num_classes == 11
    assert classifier.head_deviation < 1e-3
