"""ZeroShot: a vision-language network that classifies by the words for the classes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn
from torch.nn.functional import normalize

from oodscope.base.config import StrictModel
from oodscope.base.errors import ModelError
from oodscope.base.hashing import fingerprint
from oodscope.models.zoo.libraries import require
from oodscope.models.zoo.negatives import GENERAL_WORDS, Pool, named_negatives, plain

IMAGENET = "imagenet"


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
    pool : ``nouns`` are NegLabel's; ``csp`` adds phrases of an adjective and a general word, mined alike, and drops
        what comes closer than .95 to a class (CSP); ``negrefine`` drops proper nouns and kinds of the classes from
        that, by WordNet (NegRefine).
    pool_share : of the words and of the phrases, the share that is kept; ``csp`` and ``negrefine`` alone.
    adjectives : a text file with one per line, or ``wordnet``; as ``negatives`` unless given.
    general_words : what the adjectives stand before.
    dropped : a text file of further words that are no negatives of these classes, one per line.
    """

    class_names: Literal["imagenet"] | None = None
    templates: tuple[str, ...] = PROMPTS
    negatives: str | None = None
    negative_count: int = Field(default=10_000, gt=0)
    negative_share: float = Field(default=0.05, ge=0, lt=1)
    negative_templates: tuple[str, ...] = NEGATIVE_PROMPTS
    pool: Pool = "nouns"
    pool_share: float = Field(default=0.15, gt=0, le=1)
    adjectives: str | None = None
    general_words: tuple[str, ...] = GENERAL_WORDS
    dropped: str | None = None

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

PAIR_MATCHES = "pair_matches"
"""Key under which a network that was asked returns how much better "class and negative" fits than the negative."""


class Embedder(Protocol):
    """Sentences in, one embedding each out, ``[N, D]``; not necessarily of length one."""

    def __call__(self, sentences: Sequence[str]) -> Tensor: ...


class PairTexts:
    """Embeddings of sentences that name a class and a negative label, made when an image asks for them, and kept.

    Parameters
    ----------
    classes, negatives : the words.
    embed : makes embeddings of sentences.
    templates : the sentences, with ``{}`` where "class and negative" goes.
    pool : how the negatives were chosen.
    """

    def __init__(
        self,
        classes: Sequence[str],
        negatives: Sequence[str],
        embed: Embedder,
        templates: Sequence[str],
        pool: Pool = "nouns",
    ) -> None:
        self.classes, self.negatives, self.pool = tuple(classes), tuple(negatives), pool
        self._embed, self._templates = embed, tuple(templates)
        self._known: dict[tuple[int, int], Tensor] = {}

    def of(self, pairs: Sequence[tuple[int, int]]) -> Tensor:
        """Unit embeddings ``[P, D]`` of pairs of a class and a negative label, by their numbers."""
        missing = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if missing:
            words = [f"{plain(self.classes[p])} and {plain(self.negatives[n])}" for p, n in missing]
            self._known |= dict(zip(missing, embed_labels(self._embed, words, self._templates)))
        return torch.stack([self._known[pair] for pair in pairs])


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
    pairs : texts of a class together with a negative label, for NegRefine.
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
        pairs: PairTexts | None = None,
    ) -> None:
        super().__init__()
        self.tower = tower
        self.pairs = pairs
        self._nearest = 0
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
            if self._nearest:
                found[PAIR_MATCHES] = self._matches(embedding, found["logits"], found[NEGATIVE_COSINES])
        return found

    @contextmanager
    def matching_pairs(self, nearest: int) -> Iterator[None]:
        """While open, the network also returns how well pairs of its nearest classes and negatives fit."""
        self._nearest = nearest
        try:
            yield
        finally:
            self._nearest = 0

    def _matches(self, embedding: Tensor, logits: Tensor, cosines: Tensor) -> Tensor:
        """``[N, 1]``: over pairs of an image's nearest classes p and negatives n, the largest sigmoid of
        100 cos("p and n") - 100 cos(n)."""
        assert self.pairs is not None, "asked for where there are texts"
        known = logits.topk(min(self._nearest, logits.shape[1]), dim=1).indices.tolist()
        foreign = cosines.topk(min(self._nearest, cosines.shape[1]), dim=1).indices.tolist()
        asked = [[(p, n) for p in row for n in other] for row, other in zip(known, foreign)]
        texts = self.pairs.of([pair for row in asked for pair in row]).to(embedding)
        fits = torch.einsum("nd,npd->np", embedding, texts.reshape(len(embedding), -1, embedding.shape[1]))
        alone = torch.stack([row[[n for _, n in pairs]] for row, pairs in zip(cosines, asked)])
        return torch.sigmoid(100 * (fits - alone)).amax(dim=1, keepdim=True)

    def describe(self) -> str:
        """One line: the words behind the head."""
        count = 0 if self.negatives is None else len(self.negatives)
        pool = "" if self.pairs is None or self.pairs.pool == "nouns" else f" ({self.pairs.pool})"
        extra = f", {count} negative labels{pool}" if count else ", no negative labels"
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
    negatives = pairs = None
    if head.negatives is not None:

        def embedded(words: Sequence[str]) -> Tensor:
            return embed_labels(embed, words, head.negative_templates)

        words, negatives = named_negatives(head, class_names, classes, embedded)
        pairs = PairTexts(class_names, words, embed, head.negative_templates, head.pool)
    return ZeroShot(tower, classes, scale, bias, negatives, head.name, head.digest(class_names), pairs)


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
