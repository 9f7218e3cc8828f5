"""ZeroShot: a vision-language network that classifies by the words for the classes."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from oodscope.base.errors import ModelError
from oodscope.models.negatives import foreign, mine_negatives, plain, read_words
from oodscope.models.texthead import TextHead

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
    ) -> None:
        super().__init__()
        self.tower = tower
        self.text = nn.Linear(classes.shape[1], len(classes))
        with torch.no_grad():
            self.text.weight.copy_(scale * classes)
            self.text.bias.fill_(bias)
        self.register_buffer("negatives", None if negatives is None else negatives.float())
        self.templates = templates

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
        return f"{self.text.out_features} class names in sentences ({self.templates}){extra}"


def zero_shot(
    tower: nn.Module, embed: Embedder, class_names: Sequence[str], head: TextHead, scale: float, bias: float = 0.0
) -> ZeroShot:
    """The network for these classes: their sentences embedded, negative labels mined if ``head`` names a source."""
    twice = {name for name in class_names if list(class_names).count(name) > 1}
    if twice:
        raise ModelError(f"two classes are called {sorted(twice)[0]!r}; words cannot tell them apart")
    classes = embed_labels(embed, class_names, head.templates)
    negatives = None
    if head.negatives is not None:
        words = foreign(read_words(head.negatives), class_names)
        candidates = embed_labels(embed, words, head.negative_templates)
        negatives = candidates[mine_negatives(candidates, classes, head.negative_count, head.negative_share)]
    return ZeroShot(tower, classes, scale, bias, negatives, head.name)


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
