"""Ensembles: different networks for the same classes, trained by the ordinary recipe."""

from collections.abc import Sequence
from pathlib import Path

from torch import nn

from oodscope.base.errors import ModelError
from oodscope.base.hashing import fingerprint
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import SILENT, Progress
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.fingerprint import weights_fingerprint
from oodscope.models.zoo.zoo import MODELS, create_model
from oodscope.training.loop.sets import Sets, check_sets
from oodscope.training.recipe import Recipe
from oodscope.training.train import train

GREY = ("lenet", "small_cnn", "wrn_10_1", "small_cnn")
"""For grey images, such as digits of 28 px: three kinds of small networks, which a processor trains in minutes."""

HETEROGENEOUS = ("resnet18_32", "vgg11_32", "densenet_40_24", "wrn_16_4")
"""Residual, plain, densely connected, wide: four small networks that fail in different places."""


def train_ensemble(
    architectures: Sequence[str],
    id_train: ImageSet,
    id_val: ImageSet | None,
    recipe: Recipe,
    seeds: Sequence[int],
    *,
    preprocess: Preprocess,
    folder: Path | str,
    device: str = "auto",
    progress: Progress = SILENT,
) -> list[Classifier]:
    """One trained classifier per architecture and seed, each in a folder of its own.

    Killed, the same call goes on with the network it was at; finished ones are read back from their
    ``model.safetensors``. An ensemble that judges is trained by another call with other seeds; ``check_disjoint`` says
    whether it is another one.

    Parameters
    ----------
    architectures : of the members, such as ``HETEROGENEOUS``; one may stand here several times.
    id_train : labelled images.
    id_val : judged after every epoch; needed where the recipe has patience.
    recipe : of all members; its seed is replaced.
    seeds : one per architecture.
    preprocess : from stored pixels to what the networks expect; its channels are theirs.
    folder : for checkpoints and results. Trainings with other settings live side by side in it.
    device : ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps``.
    """
    if len(architectures) < 2:
        raise ModelError(f"an ensemble needs two networks or more, not {len(architectures)}")
    if len(seeds) != len(architectures):
        raise ModelError(f"{len(architectures)} architectures need {len(architectures)} seeds, got {len(seeds)}")
    members = list(zip(architectures, seeds))
    if len(set(members)) < len(members):
        raise ModelError("two members have the same architecture and the same seed, and would be one network")
    sets = check_sets(recipe, id_train, id_val, None)
    return [
        _member(
            architecture, recipe.model_copy(update={"seed": seed}), sets, preprocess, Path(folder), device, progress
        )
        for architecture, seed in members
    ]


def check_disjoint(
    ensemble: Sequence[Classifier], judges: Sequence[Classifier], judged: Sequence[Classifier] = ()
) -> None:
    """Refuse an ensemble that would judge its own work, by the weights of its members.

    A set filtered by a network is hard for that network by construction; if the same network, or the one under test,
    were asked whether the set is any good, the answer would be circular.

    Parameters
    ----------
    ensemble : whose mutual information made or filtered the set.
    judges : the ensemble that says how good the set is.
    judged : networks whose detectors are measured on the set.
    """
    roles = {"made the set": ensemble, "judges it": judges, "is under test": judged}
    seen: dict[str, tuple[str, str]] = {}
    for role, members in roles.items():
        own = {weights_fingerprint(member.model): member.name for member in members}
        for weights, name in own.items():
            if weights in seen:
                other, before = seen[weights]
                raise ModelError(
                    f"{name} {role} and has the weights of {other}, which {before}; train another ensemble with other "
                    "seeds"
                )
        seen |= {weights: (name, role) for weights, name in own.items()}


def _member(
    architecture: str,
    recipe: Recipe,
    sets: Sets,
    preprocess: Preprocess,
    folder: Path,
    device: str,
    progress: Progress,
) -> Classifier:
    name = f"{architecture}-seed{recipe.seed}"
    shown = [images.fingerprint for images in (sets.train, sets.val) if images is not None]
    address = fingerprint(recipe.describe(), architecture, preprocess.key, *shown)[:12]

    def build() -> nn.Module:
        return build_member(architecture, len(sets.train.class_names), len(preprocess.mean))

    build.__name__ = architecture
    trained = train(
        build,
        recipe,
        sets.train,
        preprocess,
        val=sets.val,
        folder=folder / f"{name}-{address}".replace(":", "-").replace("/", "-"),
        device=device,
        progress=progress,
    )
    return Classifier(trained.model, preprocess, device=device, name=name, trained_on=[sets.train])


def build_member(architecture: str, classes: int, channels: int) -> nn.Module:
    """A network of the zoo; ours are also made for grey images."""
    if architecture in MODELS:
        from oodscope.models.small import SMALL_NETS  # here, because it brings torchvision along

        return SMALL_NETS[architecture](num_classes=classes, channels=channels)
    return create_model(architecture, num_classes=classes)[0]
