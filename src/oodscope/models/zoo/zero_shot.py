"""ZeroShot: a vision-language network that classifies by the words for the classes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn
from torch.nn.functional import normalize

from oodscope.base.config import StrictModel
from oodscope.base.errors import ModelError
from oodscope.base.hashing import fingerprint
from oodscope.data.similarity.wordnet import wordnet_folders
from oodscope.models.zoo.libraries import require

WORDNET = "wordnet"
IMAGENET = "imagenet"
_ROWS = 4096


def read_words(source: str) -> list[str]:
    """Words of a text file, one per line, or the nouns of WordNet; each once, in the order of the source."""
    path = _wordnet() if source == WORDNET else Path(source)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"negatives: cannot read {path} ({error})") from error
    if path.name == "index.noun":
        # its licence stands first, on lines that begin with a space; then one lemma per line, before its data
        lines = [line.partition(" ")[0] for line in lines if not line.startswith(" ")]
    words = list(dict.fromkeys(plain(line) for line in lines if line.strip()))
    if not words:
        raise ModelError(f"negatives: {path} holds no word")
    return words


def plain(label: str) -> str:
    """A label as one would write it: spaces for underscores."""
    return label.strip().replace("_", " ")


def mine_negatives(words: Tensor, classes: Tensor, count: int, share: float) -> Tensor:
    r"""The rows of the ``count`` words that are farthest from all classes, farthest first.

    .. math:: d(w) = -Q_{1-\eta}\bigl(\{\cos(w, c)\}_c\bigr)

    with :math:`Q` the quantile over the classes: the similarity to the nearest class, less the share
    :math:`\eta` of classes that are nearer still. Jiang et al., "Negative Label Guided OOD Detection with
    Pretrained Vision-Language Models", ICLR 2024 (NegMining).

    Parameters
    ----------
    words, classes : unit embeddings ``[V, D]`` and ``[C, D]``.
    share : :math:`\eta`.
    """
    nearness = [torch.quantile(part @ classes.T, 1 - share, dim=1) for part in torch.split(words, _ROWS)]
    # a stable order: words that tie stay in the order of their source
    return torch.sort(torch.cat(nearness), stable=True).indices[:count]


def unrelated_words(words: Sequence[str], class_names: Sequence[str]) -> list[str]:
    """The words that are not the name of a class."""
    known = {plain(name).lower() for name in class_names}
    return [word for word in words if word.lower() not in known]


def _wordnet() -> Path:
    """WordNet's list of nouns."""
    folders, _ = wordnet_folders()
    for folder in folders:
        if (folder / "index.noun").is_file():
            return folder / "index.noun"
    raise ModelError(
        f"negatives: no WordNet found (looked for index.noun in {', '.join(map(str, folders))}). Install it (Debian: "
        "wordnet-base), set WNSEARCHDIR to its folder, or name a text file with one word per line"
    )


PROMPTS = (
    "a photo of a {}.",
    "a photograph that shows the {}.",
    "a {} seen from nearby.",
    "a {} seen from far away.",
    "a {} where one usually finds it.",
    "a small, blurred picture of a {}.",
    "a drawing of a {}.",
    "several things, one of them a {}.",
)
"""Our own ensemble, called ``oodscope-8`` in descriptions. ``templates: imagenet`` takes the eighty sentences that
CLIP's authors published for ImageNet from open_clip, where it is installed."""

NEGATIVE_PROMPTS = ("the nice {}.",)


def imagenet_names() -> tuple[str, ...]:
    """The 1,000 class names of ImageNet, in the order of its logits, as open_clip ships them."""
    return tuple(require("open_clip", "clip", "class_names: imagenet").IMAGENET_CLASSNAMES)


def imagenet_templates() -> tuple[str, ...]:
    """The eighty sentences of CLIP's authors, as open_clip ships them."""
    library = require("open_clip", "clip", "templates: imagenet")
    return tuple(sentence("{}") for sentence in library.OPENAI_IMAGENET_TEMPLATES)


class TextHead(StrictModel):
    """What a vision-language network is given in words.

    Parameters
    ----------
    class_names : ``imagenet`` for open_clip's names of ImageNet's 1,000 classes, where a benchmark only numbers them.
    templates : sentences with ``{}`` where a class name goes; a class is the normalised mean of their embeddings.
        ``imagenet`` stands for the eighty that open_clip ships.
    negatives : words that name none of the classes, for detectors that compare with them (NegLabel): a text file
        with one per line, or ``wordnet`` for the nouns of an installed WordNet.
    negative_count : how many of them are kept, those farthest from all classes.
    negative_share : what "far from all classes" means: a word's distance is taken to that share of the classes that
        are nearest to it, so that a few accidental neighbours do not count (the paper's percentile).
    negative_templates : the sentences around a negative word.
    """

    class_names: Literal["imagenet"] | None = None
    templates: tuple[str, ...] = PROMPTS
    negatives: str | None = None
    negative_count: int = Field(default=10_000, gt=0)
    negative_share: float = Field(default=0.05, ge=0, lt=1)
    negative_templates: tuple[str, ...] = NEGATIVE_PROMPTS

    @field_validator("templates", mode="before")
    @classmethod
    def _by_name(cls, templates: Any) -> Any:
        return imagenet_templates() if templates == IMAGENET else templates

    @field_validator("templates", "negative_templates")
    @classmethod
    def _one_place_each(cls, templates: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [each for each in templates if each.count("{}") != 1]
        if wrong or not templates:
            raise ValueError(f"a template is a sentence with one {{}}, not {wrong[0] if wrong else 'nothing'!r}")
        return templates

    @property
    def name(self) -> str:
        """How descriptions call the templates."""
        return "oodscope-8" if self.templates == PROMPTS else f"{len(self.templates)} of the user's"

    def digest(self, class_names: Sequence[str]) -> str:
        """Of the class names, in order, and the sentences around them: the words behind the logits."""
        return fingerprint([plain(name) for name in class_names], list(self.templates))[:16]


NEGATIVE_COSINES = "negative_cosines"
"""Key under which a network may return its images' cosines with negative labels, ``[N, M]``."""


class Embedder(Protocol):
    """Sentences in, one embedding each out, ``[N, D]``; not necessarily of length one."""

    def __call__(self, sentences: Sequence[str]) -> Tensor: ...


class ZeroShot(nn.Module):
    r"""An image tower and a head made of texts.

    .. math:: z_c(x) = s\,\hat h(x)\cdot\hat t_c + b, \qquad \hat h = h/\lVert h\rVert

    :math:`\hat t_c` is the normalised mean of the embeddings of a class's sentences, :math:`s` the network's learnt
    scale, :math:`b` its bias where it has one (SigLIP). So the features that detectors read are the unit image
    embeddings, and the head is an ordinary linear layer called ``text``, found and proved like any other.

    Parameters
    ----------
    tower : images to embeddings ``[N, D]``.
    classes : unit text embeddings ``[C, D]``.
    scale, bias : :math:`s` and :math:`b`.
    negatives : unit text embeddings of negative labels ``[M, D]``; their cosines come out beside the logits.
    templates : what the sentences were called, for descriptions.
    digest : of class names and sentences, for descriptions.
    """

    negatives: Tensor | None

    def __init__(
        self,
        tower: nn.Module,
        classes: Tensor,
        scale: float,
        bias: float = 0.0,
        negatives: Tensor | None = None,
        templates: str = "",
        digest: str = "",
    ) -> None:
        super().__init__()
        self.tower = tower
        self.text = nn.Linear(classes.shape[1], len(classes))
        with torch.no_grad():
            self.text.weight.copy_(scale * classes)
            self.text.bias.fill_(bias)
        self.register_buffer("negatives", None if negatives is None else negatives.float())
        self.templates = templates
        self.digest = digest

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        embedding = normalize(self.tower(images), dim=-1)
        found: dict[str, Tensor] = {"logits": self.text(embedding)}
        if self.negatives is not None:
            found[NEGATIVE_COSINES] = embedding @ self.negatives.T
        return found

    def describe(self) -> str:
        """One line: the words behind the head."""
        count = 0 if self.negatives is None else len(self.negatives)
        extra = f", {count} negative labels" if count else ", no negative labels"
        words = f", words {self.digest}" if self.digest else ""
        return f"{self.text.out_features} class names in sentences ({self.templates}){extra}{words}"


def zero_shot(
    tower: nn.Module, embed: Embedder, class_names: Sequence[str], head: TextHead, scale: float, bias: float = 0.0
) -> ZeroShot:
    """The network for these classes: their sentences embedded, negative labels mined if ``head`` names a source."""
    twice = {name for name in class_names if list(class_names).count(name) > 1}
    if twice and head.class_names is None:  # open_clip's own list has two names twice, and is taken as published
        raise ModelError(f"two classes are called {sorted(twice)[0]!r}; words cannot distinguish them")
    numbered = [name for name in class_names if plain(name).isdecimal()]
    if numbered:
        raise ModelError(
            f"class {numbered[0]!r} is a number, and a photo of a {numbered[0]} shows nothing: classifying by words "
            "needs class names. Name the classes of the benchmark, or say text_head: {class_names: imagenet}"
        )
    classes = embed_labels(embed, class_names, head.templates)
    negatives = None
    if head.negatives is not None:
        words = unrelated_words(read_words(head.negatives), class_names)
        candidates = embed_labels(embed, words, head.negative_templates)
        negatives = candidates[mine_negatives(candidates, classes, head.negative_count, head.negative_share)]
    return ZeroShot(tower, classes, scale, bias, negatives, head.name, head.digest(class_names))


@torch.no_grad()
def embed_labels(embed: Embedder, labels: Sequence[str], templates: Sequence[str]) -> Tensor:
    """Unit embeddings ``[L, D]``: of each label the normalised mean over its sentences' unit embeddings."""
    total: Tensor | None = None
    for template in templates:
        sentences = [template.format(plain(label)) for label in labels]
        unit = normalize(embed(sentences).float().cpu(), dim=-1)
        total = unit if total is None else total + unit
    assert total is not None, "a text head has at least one template"
    return normalize(total, dim=-1)
