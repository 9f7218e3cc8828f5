"""How large the study of ``evg_table.py`` is: whole on a GPU, a stated smaller form on a CPU, or a try."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PLAIN = "plain"
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
    from_test : whether it learns from test images, so that a try needs no training images.
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
    from_test: bool = False
    generator: Mapping[str, Any] = field(default_factory=lambda: {"steps": 3_000, "batch_size": 256, "width": 48})
    rows: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    chains: int = 200
    budget: int = 2_000
    seeds: int = 3

    def describe(self, train: int) -> str:
        """What the page says of it: the words, and every number that is not the whole study's."""
        if not self.words:
            return ""
        changed = {**self.settings, "generators": self.generator}
        said = [f"{name} {_listed(settings)}" for name, settings in changed.items() if name != PLAIN]
        network = f", {self.network} in the place of ResNet-18 ({_listed(self.settings.get(PLAIN, self.common))})"
        return f"{self.words}: {train:,} training images{network if self.network else ''}; {'; '.join(said)}"


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
                     for key, value in settings.items())  # fmt: skip


FORMS = {
    "whole": Form(),
    "cpu": Form(
        words="small networks trained for minutes on two processor cores",
        train=20_000,
        test=3_000,
        judged=1_500,
        settings={
            "plain": {"epochs": 8},
            "ceda": {"epochs": 3},
            "oe": {"epochs": 3},
            "acet": {"epochs": 3, "attack_steps": 4},
            "sngp": {"epochs": 8, "features": 256},
            "ssd": {"epochs": 6, "batch_size": 256, "warmup_epochs": 1},
            "atom": {"epochs": 4},
            "rowl": {"epochs": 4, "attack_steps": 3, "attack_step": 4 / 255},
            "rowl_released": {"epochs": 4},
            "csi": {"epochs": 4, "warmup_epochs": 1},
            "autoencoder": {"epochs": 6, "width": 32},
            "glow": {"epochs": 3, "flow_steps": 4, "width": 32},
            "pixelcnn": {"epochs": 1, "filters": 16, "blocks": 1, "resolutions": 2, "mixtures": 3, "dropout": 0.0},
        },
        network="small_cnn",
        generator={"steps": 400, "batch_size": 32, "width": 12},
        rows=(
            *("ceda", "oe", "autoencoder", "md", "acet", "sngp", "glow", "ssd", "atom", "pixelcnn", "rowl", "csi"),
            "rowl_released",
        ),
        kinds=("linf", "affine", "color", "gan"),
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
        from_test=True,
        generator={"steps": 2, "batch_size": 8, "width": 4},
        chains=4,
        budget=10,
    ),
}
