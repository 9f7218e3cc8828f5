"""Negative labels: words that name none of the classes, and how they are chosen."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

import torch
from torch import Tensor

from oodscope.base.errors import ModelError
from oodscope.data.similarity.wordnet import WordNet, wordnet_folders

WORDNET = "wordnet"
_ROWS = 4096

Pool = Literal["nouns", "csp", "negrefine"]
"""How negative labels are chosen: as NegLabel, as CSP, or as NegRefine does."""

NEAREST = 0.95
"""Cosine to a class above which a word or phrase of CSP's pool names that class."""

GENERAL_WORDS = (
    *("thing", "place", "creature", "person", "device", "building", "meal"),
    *("plant", "surface", "pattern", "event", "vehicle", "garment", "picture"),
)
"""Our own list, of the length of the authors'."""


class NegativesHead(Protocol):
    """What a text head says of its negatives; see ``TextHead``."""

    @property
    def negatives(self) -> str | None: ...
    @property
    def negative_count(self) -> int: ...
    @property
    def negative_share(self) -> float: ...
    @property
    def pool(self) -> Pool: ...
    @property
    def pool_share(self) -> float: ...
    @property
    def adjectives(self) -> str | None: ...
    @property
    def general_words(self) -> tuple[str, ...]: ...
    @property
    def dropped(self) -> str | None: ...


def named_negatives(
    head: NegativesHead, class_names: Sequence[str], classes: Tensor, embed: Callable[[Sequence[str]], Tensor]
) -> tuple[list[str], Tensor]:
    """The negative labels that a text head asks for, farthest from the classes first, and their unit embeddings.

    Parameters
    ----------
    classes : unit text embeddings of the classes.
    embed : unit embeddings of words.
    """
    assert head.negatives is not None, "asked for where there are some"
    words = unrelated_words(read_words(head.negatives), class_names)
    if head.dropped is not None:
        verdicts = {word.lower() for word in read_words(head.dropped)}
        words = [word for word in words if word.lower() not in verdicts]
    if head.pool == "nouns":
        candidates = embed(words)
        rows = mine_negatives(candidates, classes, head.negative_count, head.negative_share)
        return [words[row] for row in rows.tolist()], candidates[rows]
    if head.pool == "negrefine":
        words = refined(words, class_names, needed=head.dropped is None)
    if not words:
        raise ModelError("negatives: no word is left that names none of the classes")
    parts = [_far(words, classes, embed, head), _far(conjugated(head), classes, embed, head)]
    # both kinds by turns, so that groups of negatives, which are dealt out in order, hold both
    order = torch.argsort(torch.cat([torch.arange(len(names)) for names, _ in parts]), stable=True)[
        : head.negative_count
    ]
    names = [name for each, _ in parts for name in each]
    return [names[row] for row in order.tolist()], torch.cat([rows for _, rows in parts])[order]


def _far(
    words: Sequence[str], classes: Tensor, embed: Callable[[Sequence[str]], Tensor], head: NegativesHead
) -> tuple[list[str], Tensor]:
    """The share of words farthest from the classes, without those that name one."""
    rows = embed(words)
    count = max(1, round(head.pool_share * len(words)))
    chosen = mine_negatives(rows, classes, count, head.negative_share)
    chosen = chosen[(rows[chosen] @ classes.T).amax(dim=1) <= NEAREST]
    return [words[row] for row in chosen.tolist()], rows[chosen]


def conjugated(head: NegativesHead) -> list[str]:
    """Phrases of an adjective and a general word, which comes by turns (Chen et al., NeurIPS 2024, CSP)."""
    adjectives = read_words(head.adjectives or str(head.negatives), "adj")
    return [f"{each} {head.general_words[place % len(head.general_words)]}" for place, each in enumerate(adjectives)]


def refined(words: Sequence[str], class_names: Sequence[str], needed: bool = True) -> list[str]:
    """The words without proper nouns and without kinds of the classes, by WordNet.

    NegRefine asks a language model; WordNet's instances and hyponyms say the same of the words that it knows, and
    always the same.

    Parameters
    ----------
    needed : whether it is an error that there is no WordNet; a file of verdicts may stand in for it.
    """
    net = WordNet.find()
    if net is None:
        if needed:
            raise ModelError(
                "negatives: pool negrefine asks WordNet which words are proper nouns or kinds of the classes, and none "
                "was found. Install it (Debian: wordnet-base), set WNSEARCHDIR, or name the words to drop (dropped)"
            )
        return list(words)
    meanings = [meaning for name in class_names for meaning in net.meanings(plain(name))[:1]]
    return [word for word in words if not net.is_proper(word) and not net.is_kind_of(word, meanings)]


def read_words(source: str, part: str = "noun") -> list[str]:
    """Words of a text file, one per line, or those of WordNet of one part of speech (``noun``, ``adj``).

    Each once, in the order of the source.
    """
    path = _wordnet(part) if source == WORDNET else Path(source)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"negatives: cannot read {path} ({error})") from error
    if path.name == f"index.{part}":
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


def _wordnet(part: str) -> Path:
    """WordNet's list of the words of one part of speech."""
    folders, _ = wordnet_folders()
    for folder in folders:
        if (folder / f"index.{part}").is_file():
            return folder / f"index.{part}"
    raise ModelError(
        f"negatives: no WordNet found (looked for index.{part} in {', '.join(map(str, folders))}). Install it (Debian: "
        "wordnet-base), set WNSEARCHDIR to its folder, or name a text file with one word per line"
    )
