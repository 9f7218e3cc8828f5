"""``oodscope generate gan`` from a place and from a benchmark's set."""

import numpy as np
import pytest

from oodscope.generation.variations.gan import GanVariation
from oodscope.models.generators.saved import load_generator

SMALL = ("--steps", 2, "--batch-size", 4, "--width", 3, "--device", "cpu")


@pytest.fixture
def images(tmp_path):
    path = tmp_path / "blobs.npz"
    np.savez(path, images=np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3)).astype(np.uint8))
    return path


@pytest.fixture
def benchmark(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(
        "name: small\nversion: '1'\nsets:\n"
        "  id_test: {source: glyphs, split: id_test, per_class: 1}\n"
        "  far:\n    digits: {source: glyphs, split: digits, per_class: 2}\n"
    )
    return path


def test_from_a_place(oodscope, images, tmp_path):
    outcome = oodscope("generate", "gan", "--on", images, "--output", tmp_path / "made", *SMALL, "--seed", 3)
    assert outcome.status == 0, outcome
    assert "of the 20 images of blobs" in outcome.out and "generator.safetensors" in outcome.out
    variation = GanVariation(load_generator(tmp_path / "made" / "generator.safetensors"))
    assert variation.size == (3, 8, 8) and variation.domain.dimension == 64
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == ["generator.safetensors", "samples.png"]


def test_stopped_by_the_clock(oodscope, images, tmp_path):
    outcome = oodscope("generate", "gan", "--on", images, "--output", tmp_path / "made", *SMALL, "--minutes", 0)
    assert outcome.status == 0, outcome
    assert "stopped at step 1 of 2; the same command continues from there" in outcome.out


def test_from_a_set_of_a_benchmark(oodscope, benchmark, tmp_path):
    outcome = oodscope("generate", "gan", "--on", f"{benchmark}:digits", "--output", tmp_path / "made", *SMALL)
    assert outcome.status == 0, outcome
    assert "of the 20 images of digits" in outcome.out


@pytest.mark.parametrize(
    ("changed", "said", "status"),
    [
        (("--on", "small.yaml:digit"), "unknown set of small.yaml 'digit'. Did you mean 'digits'?", 2),
        (("--on", "nowhere"), "nowhere is not there; images come from", 1),
        (("--batch-size", 6), "generate gan: batch_size: Input should be a multiple of 4", 2),
        (("--size", 30), "cannot make images of 30 px", 1),
        (("--r1", -1), "generate gan: r1:", 2),
    ],
)
def test_mistakes_are_one_line(oodscope, images, benchmark, tmp_path, changed, said, status):
    given = {"--on": images, "--output": tmp_path / "made"} | dict(zip(SMALL[::2], SMALL[1::2])) | dict([changed])
    outcome = oodscope("generate", "gan", *[word for pair in given.items() for word in pair])
    assert outcome.status == status, outcome
    assert outcome.err.splitlines()[-1].startswith("oodscope: ") and said in outcome.err
    assert not (tmp_path / "made").exists()
