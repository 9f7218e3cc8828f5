"""How large the study of ``evg_table.py`` is: whole on a GPU, a stated smaller form on a CPU, or a try."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TRY = {"epochs": 1, "batch_size": 32, "warmup_epochs": 0}


@dataclass(frozen=True)
class Form:
    """Numbers of images, settings of trainings and efforts of searches.

    Parameters
    ----------
    words : what the page says of it; empty for the whole study.
    train, val, test, learnt, judged : images of each kind, all of them where there is no number; ``learnt`` are the
        outliers that rows learn from, ``judged`` those of each half of a test set.
    common, settings : what is changed in every recipe, and in those of a row.
    network : in the place of every ResNet-18.
    generator : settings of the generators.
    rows : those that are run where none are named; none for all.
    kinds : variations that are run where none are named; none for all.
    chains, budget, seeds : of each search, where nothing else is said.
    """

    words: str = ""
    train: int | None = None
    val: int | None = None
    test: int | None = None
    learnt: int | None = None
    judged: int | None = None
    common: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    network: str = ""
    generator: Mapping[str, Any] = field(default_factory=lambda: {"steps": 3_000, "batch_size": 256, "width": 48})
    rows: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    chains: int = 200
    budget: int = 2_000
    seeds: int = 3


FORMS = {
    "whole": Form(),
    "cpu": Form(
        words=(
            "networks of a few channels trained for minutes on two processor cores: {train} training images; "
            "the autoencoder 6 epochs at width 32, the flow 3 epochs of 3 levels, 4 steps and 32 channels, the "
            "PixelCNN one epoch of one block, two resolutions and 16 filters; generators of 400 steps at width 12"
        ),
        train=20_000,
        test=3_000,
        judged=1_500,
        settings={
            "autoencoder": {"epochs": 6, "width": 32},
            "glow": {"epochs": 3, "flow_steps": 4, "width": 32},
            "pixelcnn": {"epochs": 1, "filters": 16, "blocks": 1, "resolutions": 2, "mixtures": 3, "dropout": 0.0},
        },
        generator={"steps": 400, "batch_size": 32, "width": 12},
        rows=("autoencoder", "glow", "pixelcnn"),
        kinds=("affine", "color", "gan"),
        chains=60,
        budget=100,
    ),
    "small": Form(
        words="a try of the script; its numbers mean nothing",
        train=200,
        val=60,
        test=80,
        learnt=120,
        judged=64,
        common=TRY,
        settings={
            "glow": {"flow_steps": 1, "width": 4},
            "pixelcnn": {"filters": 4, "blocks": 1, "mixtures": 2},
            "autoencoder": {"width": 4, "code": 4},
            "csi": {"epochs": 12, "learning_rate": 2.0},
            "nae": {"width": 4, "code": 4, "epochs": 2, "plain_epochs": 1, "latent_steps": 1, "pixel_steps": 1},
        },
        network="small_cnn",
        generator={"steps": 2, "batch_size": 8, "width": 4},
        chains=4,
        budget=10,
    ),
}
