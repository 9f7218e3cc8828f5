"""What detectors with a network of their own and attacked trainings refuse, by command: one line, before any work."""

import pytest
from safetensors.torch import save_file

from oodscope.models.density.glow import GlowShape
from oodscope.models.density.saved import build_density, save_density
from oodscope.models.zoo.zoo import create_model
from tests.cli.test_train import BENCHMARK, project  # noqa: F401  # a fixture

GREY = """
import torch

def build():
    layers = torch.nn.Conv2d(1, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 3)
    return torch.nn.Sequential(*layers)
"""


def refused(outcome, status, words):
    assert outcome.status == status and words in outcome.err, outcome
    errors = [line for line in outcome.err.splitlines() if line.startswith("oodscope: ")]
    assert len(errors) == 1 and "Traceback" not in outcome.err, outcome


@pytest.mark.parametrize(
    ("recipe", "setting", "words"),
    [
        ("acet", "epsilon=0", "epsilon: must be above 0, not 0: without a radius this is the recipe ceda"),
        ("l2_adversarial", "epsilon=0", "without a radius this is the recipe cross_entropy"),
        ("atom", "epsilon=0", "without a radius this is the recipe ntom"),
        ("rowl", "epsilon=0", "without a radius this is the recipe rowl_released"),
        ("good", "epsilon=0", "without a radius nothing is proven; use ceda"),
        ("ant", "epsilon=0", "without noise this is the recipe cross_entropy"),
        ("nae", "pixel_step=1000", "a chain of pixels leaves its box: a step of 1000 times gradients of up to 0.01"),
        ("nae", "pixel_noise=3", "pixel_noise: Input should be less than or equal to 1"),
    ],
)
def test_settings_that_make_no_sense(oodscope, project, recipe, setting, words):  # noqa: F811
    made = oodscope(
        "train", "--benchmark", project / "bench.yaml", "--root", project, "--recipe", recipe, "--model", "small_cnn",
        "--set", setting, "--device", "cpu",
    )  # fmt: skip
    refused(made, 2, words)
    assert not (project / "runs").exists(), "nothing was begun"


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ("glow", "a flow of 3 levels halves its images 3 times, and 28 x 28 pixels do not allow that"),
        ("nae", "the normalised autoencoder halves its images 3 times"),
    ],
)
def test_sizes_that_cannot_be_halved(oodscope, project, recipe, words):  # noqa: F811
    (project / "small.yaml").write_text(BENCHMARK.replace("size: 32", "size: 28"))
    made = oodscope(
        "train", "--benchmark", project / "small.yaml", "--root", project, "--recipe", recipe, "--device", "cpu"
    )
    refused(made, 1, words)
    assert not list(project.glob("runs/train/*/*.safetensors"))


@pytest.mark.parametrize(
    ("size", "channels", "words"),
    [
        (32, 1, "glow: its network was trained on colour images (3 channels), and these have 1 channel"),
        (40, 3, "glow: its network was trained on 32 x 32 pixels, and these images have 40 x 40"),
    ],
)
def test_images_that_a_flow_was_not_trained_on(oodscope, project, size, channels, words):  # noqa: F811
    shape = GlowShape(levels=1, steps=1, width=4)
    save_density(build_density(shape), project / "runs/train/glow-seed0/density.safetensors", {})
    transform = f"{{size: {size}, mean: {[0.0] * channels}, std: {[1.0] * channels}}}"
    (project / "bench.yaml").write_text(BENCHMARK.replace("{size: 32}", transform))
    (project / "greynet.py").write_text(GREY)
    save_file(create_model("small_cnn", num_classes=3).model.state_dict(), project / "net.safetensors")
    model = ["python:greynet:build"] if channels == 1 else ["small_cnn", "--weights", project / "net.safetensors"]
    done = oodscope(
        "evaluate", "--benchmark", project / "bench.yaml", "--root", project, "--device", "cpu", "--detectors", "glow",
        "--model", *model,
    )  # fmt: skip
    refused(done, 1, words)
    assert "extract" not in done.err, "no image was read"


def test_a_search_in_a_ball_of_radius_zero(oodscope, project):  # noqa: F811
    save_file(create_model("small_cnn", num_classes=3).model.state_dict(), project / "net.safetensors")
    common = ["--benchmark", project / "bench.yaml", "--root", project, "--device", "cpu", "--model", "small_cnn",
              "--weights", project / "net.safetensors"]  # fmt: skip
    refused(oodscope("attack", *common, "--detectors", "msp", "--variations", "linf,epsilon=0"), 2, "epsilon")
