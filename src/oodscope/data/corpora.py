"""What networks are pretrained on, and which test sets are known to lie inside it.

A network that has seen a test set's images, or its classes, before it ever met the ID data finds them less OOD
("PT-OOD", arXiv 2310.00847). Only facts with a known answer stand here; a set that is not named has no known answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from oodscope.base.errors import UnknownNameError


@dataclass(frozen=True)
class Corpus:
    """A collection that networks are pretrained on.

    Parameters
    ----------
    inside : beginnings of the names of sets that lie in it, in letters and digits only.
    open_ended : collected from the web, so that any public image may be in it.
    """

    name: str
    summary: str
    inside: tuple[str, ...] = ()
    open_ended: bool = False


_IMAGENET_1K = ("tinyimagenet", "tin", "imagenet1k")

CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus("imagenet1k", "ILSVRC 2012; the classes of Tiny ImageNet are among its classes", _IMAGENET_1K),
        Corpus("imagenet21k", "all of ImageNet; SSB-hard is a part of it", (*_IMAGENET_1K, "ssbhard")),
        Corpus("dinov2", "LVD-142M: web images retrieved around ImageNet-21k", (*_IMAGENET_1K, "ssbhard"), True),
        Corpus("clip", "400 million pairs of image and text from the web", open_ended=True),
        Corpus("laion", "LAION-400M and 5B: image and text from the web", open_ended=True),
        Corpus("webli", "WebLI: image and text from the web in many languages", open_ended=True),
    )
}


def pretraining_overlap(corpora: Iterable[str], set_name: str) -> str:
    """What these corpora are known to share with a set, in words: ``pretraining:imagenet21k``; often nothing."""
    plain = "".join(character for character in set_name.lower() if character.isalnum())
    said = []
    for name in corpora:
        corpus = get_corpus(name)
        if any(plain == start or (len(start) > 3 and plain.startswith(start)) for start in corpus.inside):
            said.append(f"pretraining:{name}")
        elif corpus.open_ended:
            said.append(f"pretraining:{name} (web images, may hold it)")
    return ", ".join(said)


def get_corpus(name: str) -> Corpus:
    """The corpus called ``name``; an unknown name suggests the nearest."""
    if name not in CORPORA:
        raise UnknownNameError("pretraining corpus", name, CORPORA, f"Known: {', '.join(CORPORA)}")
    return CORPORA[name]
