"""The networks of the human-centric evaluation (Zhu et al., arXiv 2211.16778), by the names of this package.

The paper speaks of 45 models and prints no list: its text, tables and figures name single networks, families "with
different capacities", training strategies and distilled versions. What they name adds up to the 48 rows below. Not all
can have been used: of the nine strengths of adversarial training that Salman et al. published, the paper took eight,
and which members of the VGG, DenseNet and ViT families it took is not printed (``named`` is false there).

The CNNs came from torchvision 0.10, the others from timm 0.4.12; tags name the same weights in today's releases.
Which of timm's two SENet154 was meant is not said: the one ported from the authors' release stands here. Weights that
neither library publishes must be fetched from their authors and passed as a file.
"""

from typing import NamedTuple

PRETRAINED = "pretrained"


class StudiedModel(NamedTuple):
    """One row of the study.

    Parameters
    ----------
    name : the paper's.
    spec : what ``create_model`` takes.
    family : architecture family, the groups of the paper's figure on capacity.
    strategy : how it was trained, where the paper compares training.
    weights : ``pretrained``, or whose weights file must be passed.
    named : whether the paper names this very network; otherwise only its family.
    """

    name: str
    spec: str
    family: str
    strategy: str = "standard"
    weights: str = PRETRAINED
    named: bool = True


def _torchvision(name: str, network: str, family: str, named: bool = True) -> StudiedModel:
    return StudiedModel(name, f"torchvision:{network}.IMAGENET1K_V1", family, named=named)


def _retrained(name: str, strategy: str, authors: str, named: bool = True) -> StudiedModel:
    return StudiedModel(name, "torchvision:resnet50", "ResNet", strategy, authors, named)


_CONVOLUTIONAL = (
    *(_torchvision(f"VGG{depth}", f"vgg{depth}", "VGG", depth == 19) for depth in (11, 13, 16, 19)),
    *(_torchvision(f"ResNet-{depth}", f"resnet{depth}", "ResNet") for depth in (18, 34, 50, 101, 152)),
    *(_torchvision(f"DenseNet-{depth}", f"densenet{depth}", "DenseNet", False) for depth in (121, 161, 169, 201)),
    _torchvision("MobileNetV2", "mobilenet_v2", "MobileNet"),
    StudiedModel("NASNet", "timm:nasnetalarge.tf_in1k", "NASNet"),
    StudiedModel("InceptionV4", "timm:inception_v4.tf_in1k", "Inception"),
    StudiedModel("SENet154", "timm:legacy_senet154.in1k", "SENet"),
)

_TOKENS = (
    *(
        StudiedModel(
            f"ViT-{letter}16", f"timm:vit_{size}_patch16_224.augreg_in21k_ft_in1k", "ViT", named=size != "small"
        )
        for letter, size in (("T", "tiny"), ("S", "small"), ("B", "base"), ("L", "large"))
    ),
    *(
        StudiedModel(f"Swin-{size[0].upper()}", f"timm:swin_{size}_patch4_window7_224.{tag}", "Swin")
        for size, tag in (
            ("tiny", "ms_in1k"),
            ("small", "ms_in1k"),
            ("base", "ms_in22k_ft_in1k"),
            ("large", "ms_in22k_ft_in1k"),
        )
    ),
)

_DISTILLED = (
    *(StudiedModel(f"ResMLP-{depth}", f"timm:resmlp_{depth}_224.fb_in1k", "ResMLP") for depth in (12, 24)),
    *(
        StudiedModel(
            f"ResMLP-{depth} distilled", f"timm:resmlp_{depth}_224.fb_distilled_in1k", "ResMLP", "distillation"
        )
        for depth in (12, 24)
    ),
    *(
        StudiedModel(f"DeiT-{size[0].upper()}", f"timm:deit_{size}_patch16_224.fb_in1k", "DeiT")
        for size in ("tiny", "base")
    ),
    *(
        StudiedModel(
            f"DeiT-{size[0].upper()} distilled",
            f"timm:deit_{size}_distilled_patch16_224.fb_in1k",
            "DeiT",
            "distillation",
        )
        for size in ("tiny", "base")
    ),
    # the distilled ResNet-50 of the figure on distillation is that of the figure on strategies
    _retrained("ResNet-50 MEAL V2", "distillation", "Shen & Savvides 2020"),
)

_STRATEGIES = (
    _retrained("ResNet-50 SIN", "stylised images", "Geirhos et al. 2019"),
    _retrained("ResNet-50 SIN-IN", "stylised and natural images", "Geirhos et al. 2019"),
    _retrained("ResNet-50 AugMix", "augmix", "Hendrycks et al. 2020"),
    _retrained("ResNet-50 AutoAugment", "autoaugment", "Lim et al. 2019"),
    _retrained("ResNet-50 ANT", "additive noise", "Rusak et al. 2020"),
)

_ADVERSARIAL = tuple(
    _retrained(
        f"ResNet-50 l2 {strength:g}", f"adversarial, l2 {strength:g}", "Salman et al. 2020", strength in (0.1, 1)
    )
    for strength in (0.01, 0.03, 0.05, 0.1, 0.25, 0.5, 1, 3, 5)
)

STUDIED: dict[str, StudiedModel] = {
    model.name: model for model in (*_CONVOLUTIONAL, *_TOKENS, *_DISTILLED, *_STRATEGIES, *_ADVERSARIAL)
}
"""Every row by the paper's name."""
