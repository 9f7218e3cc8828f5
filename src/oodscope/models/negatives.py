"""Negative labels: words far from every class, mined from a list."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from oodscope.base.errors import ModelError
from oodscope.data.similarity.wordnet import wordnet_folders

WORDNET = "wordnet"
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


def foreign(words: Sequence[str], class_names: Sequence[str]) -> list[str]:
    """The words that are no class's name."""
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
