"""The rows of Table 2 of evaluation via generation, as they are trained here, and the paper's values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SETS = ("svhn", "scenes")
KINDS = ("linf", "affine", "color", "gan", "linf black-box")
VARIED = KINDS[:4]
PROVEN = "proven"
"""What no attack in the ball can undercut, for rows with bounds; beside the variations."""


@dataclass(frozen=True)
class Row:
    """One detector of the table.

    Parameters
    ----------
    stages : recipes and settings, in order; none for a score of the plain network.
    detector : the score; empty takes the recipe's own.
    start : the row whose network the first stage starts from.
    own : whether it has a network of its own.
    peeks : whether it was fitted with images of a test source.
    outliers : whether it was trained with outliers.
    certified : whether its network has proven bounds in the ball of .01.
    published : AUROC of the paper on SVHN: clean, l-inf, affine, color, GAN; none for a row that it does not have.
    minutes : of training on one H200, estimated.
    """

    name: str
    stages: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    detector: str = ""
    start: str = ""
    model: str = "resnet18_32"
    own: bool = False
    peeks: bool = False
    outliers: bool = False
    certified: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)
    precision: str = "bf16-mixed"
    published: tuple[float, ...] = ()
    minutes: float = 0.0

    @property
    def recipe(self) -> str:
        """Of its last stage."""
        return self.stages[-1][0] if self.stages else ""


def own(name: str, published: tuple[float, ...], minutes: float) -> Row:
    """A row with a network of its own, in float32 with rounded factors."""
    return Row(name, ((name, {}),), name, own=True, published=published, minutes=minutes, precision="tf32")


def exposed(name: str, published: tuple[float, ...], minutes: float, **changes: Any) -> Row:
    """A row trained with outliers."""
    return Row(
        name, changes.pop("stages", ((name, {}),)), outliers=True, published=published, minutes=minutes, **changes
    )


ROWS = (
    Row("plain", (("cross_entropy", {"epochs": 40}),), "msp", minutes=0.8),
    exposed("ceda", (0.987, 0.690, 0.636, 0.912, 0.435), 0.32, start="plain"),
    exposed("oe", (0.997, 0.566, 0.751, 0.953, 0.620), 0.4, stages=(("outlier_exposure", {}),), start="plain"),
    own("autoencoder", (0.080, 0.054, 0.032, 0.000, 0.000), 0.41),
    Row("md", (), "mahalanobis_layers", peeks=True, published=(0.993, 0.581, 0.747, 0.484, 0.169)),
    exposed("acet", (0.966, 0.905, 0.753, 0.868, 0.425), 1.9, start="plain"),
    Row("sngp", (("sngp", {}),), published=(0.994, 0.096, 0.761, 0.892, 0.488), minutes=2.0),
    own("glow", (0.069, 0.071, 0.002, 0.000, 0.000), 2.04),
    Row("ssd", (("ssd", {}),), published=(0.989, 0.199, 0.631, 0.936, 0.479), minutes=2.8),
    exposed(
        "good",
        (0.943, 0.714, 0.565, 0.664, 0.515),
        3.4,
        stages=(("ceda", {"epochs": 30}), ("good", {})),
        model="plain_cnn_32",
        precision="tf32",
        certified=True,
    ),
    exposed("atom", (0.996, 0.992, 0.908, 0.974, 0.616), 3.8),
    own("pixelcnn", (0.076, 0.078, 0.015, 0.000, 0.000), 3.8),
    exposed("rowl", (0.997, 0.875, 0.675, 0.969, 0.659), 4.1),
    own("nae", (0.935, 0.900, 0.755, 0.704, 0.005), 11.9),
    Row("csi", (("csi_unlabelled", {}),), published=(0.998, 0.630, 0.940, 0.992, 0.893), minutes=11.9),
    exposed("rowl_released", (), 1.0),
)
"""From cheap to dear, so that a short time gives most rows; last, the form of ROWL that its released code trains."""

WEAK = ("glow", "pixelcnn", "autoencoder")
STRONG = ("nae", "good", "acet", "ceda", "ssd", "md", "sngp", "atom", "oe", "rowl", "csi")
