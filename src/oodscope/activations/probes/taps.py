"""Taps: reductions of what a network shows on the way, taken during the plain pass."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from oodscope.activations.probes.probe import Tap
from oodscope.base.errors import ModelError
from oodscope.models.classifier.anatomy import captured, watched_maps
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.ensemble import MEMBER_LOGITS
from oodscope.models.zoo.zero_shot import NEGATIVE_COSINES, PAIR_MATCHES, ZeroShot


class StageTap(Tap):
    """One vector per stage of the network, as ``[N, stages, width]``.

    Stages differ in width; the narrower ones are filled up with zeros.
    """

    @abstractmethod
    def reduce(self, maps: Tensor) -> Tensor:
        """``[N, width]`` of the feature maps ``[N, C, H, W]`` of one stage."""

    @contextmanager
    def watching(self, classifier: Classifier) -> Iterator[Callable[[], Tensor]]:
        with watched_maps(classifier.model, classifier.anatomy.stages, self.reduce) as shown:
            yield lambda: stacked(shown)


class PooledMaps(StageTap):
    """The mean of each channel over the image, at every stage."""

    @property
    def column(self) -> str:
        return "pooled_maps"

    def reduce(self, maps: Tensor) -> Tensor:
        return maps.float().mean(dim=(2, 3))


class GramSums(StageTap):
    r"""Row sums of the Gram matrix of each power of the feature maps, at every stage.

    .. math:: G^p_i = \sum_j \Bigl(\sum_u F_{iu}^{\,p} F_{ju}^{\,p}\Bigr)^{1/p}

    with :math:`F` the rectified map of a stage, channels by pixels. Sastry & Oore, "Detecting
    Out-of-Distribution Examples with Gram Matrices", ICML 2020. A vector holds the sums of the first power,
    then those of the second, and so on.

    Parameters
    ----------
    powers : the highest :math:`p`.
    """

    def __init__(self, powers: int = 5) -> None:
        self.powers = powers

    @property
    def column(self) -> str:
        return f"gram_sums(powers={self.powers})"

    def reduce(self, maps: Tensor) -> Tensor:
        flat = maps.float().flatten(2).relu()
        # a large entry to a high power leaves float32: take its size out first and put it back afterwards
        size = flat.amax(dim=(1, 2), keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
        scaled, sums = flat / size, []
        for power in range(1, self.powers + 1):
            raised = scaled.pow(power)
            gram = (raised @ raised.transpose(1, 2)).pow(1 / power)
            sums.append(gram.sum(dim=2) * size.flatten(1).square())
        return torch.cat(sums, dim=1)


class MemberLogits(Tap):
    """The logits of each member of an ensemble, ``[N, members, classes]``."""

    @property
    def column(self) -> str:
        return "member_logits"

    @contextmanager
    def watching(self, classifier: Classifier) -> Iterator[Callable[[], Tensor]]:
        with captured(classifier.model, MEMBER_LOGITS) as seen:
            yield lambda: seen.pop().float()


class Output(Tap):
    """What the network returns under a name beside its logits, one row per image.

    Parameters
    ----------
    name : the key in the dictionary that the network returns, such as ``confidence``.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def column(self) -> str:
        return f"output({self.name})"

    @contextmanager
    def watching(self, classifier: Classifier) -> Iterator[Callable[[], Tensor]]:
        with captured(classifier.model, self.name) as seen:
            yield lambda: seen.pop().float()


class NegativeSums(Tap):
    r"""How strongly each group of negative labels answers to an image, ``[N, groups]``.

    .. math:: a_g(x) = \log\sum_{j \in g} e^{\cos(h, n_j)/\tau}

    Ten thousand cosines per image are too many to keep; what NegLabel needs of them is this. The labels come
    farthest from the classes first, and are dealt out one by one, so that all groups are alike.

    Parameters
    ----------
    temperature : :math:`\tau`.
    groups : how many; never more than there are negative labels.
    """

    def __init__(self, temperature: float, groups: int) -> None:
        self.temperature = temperature
        self.groups = groups

    @property
    def column(self) -> str:
        return f"negative_sums(temperature={self.temperature:g}, groups={self.groups})"

    @contextmanager
    def watching(self, classifier: Classifier) -> Iterator[Callable[[], Tensor]]:
        with captured(classifier.model, NEGATIVE_COSINES) as seen:
            yield lambda: self.reduce(seen.pop().float())

    def reduce(self, cosines: Tensor) -> Tensor:
        """``[N, groups]`` of the cosines ``[N, M]``."""
        groups = min(self.groups, cosines.shape[1])
        dealt = [cosines[:, group::groups] / self.temperature for group in range(groups)]
        return torch.stack([part.logsumexp(dim=1) for part in dealt], dim=1)


class NegativeCosines(Tap):
    """The cosine of an image with every negative label, ``[N, M]``, farthest from the classes first.

    For detectors that learn which negatives matter; ten thousand of them are 40 kB an image.
    """

    @property
    def column(self) -> str:
        return "negative_cosines"

    @contextmanager
    def watching(self, classifier: Classifier) -> Iterator[Callable[[], Tensor]]:
        with captured(classifier.model, NEGATIVE_COSINES) as seen:
            yield lambda: seen.pop().float()


class PairMatches(Tap):
    """How much better "class and negative label" fits an image than the negative label alone, ``[N, 1]``.

    The largest over pairs of the nearest classes and negatives; their texts are embedded once and kept.

    Parameters
    ----------
    nearest : classes and negatives that are paired.
    """

    def __init__(self, nearest: int) -> None:
        self.nearest = nearest

    @property
    def column(self) -> str:
        return f"pair_matches(nearest={self.nearest})"

    @contextmanager
    def watching(self, classifier: Classifier) -> Iterator[Callable[[], Tensor]]:
        network = classifier.model
        if not isinstance(network, ZeroShot):
            raise ModelError("texts of pairs need a network that classifies by words (open_clip)")
        with network.matching_pairs(self.nearest), captured(network, PAIR_MATCHES) as seen:
            yield lambda: seen.pop().float()


def stacked(vectors: list[Tensor]) -> Tensor:
    """Vectors of different widths as one ``[N, count, widest]``, filled up with zeros."""
    widest = max(vector.shape[1] for vector in vectors)
    return torch.stack([torch.nn.functional.pad(vector, (0, widest - vector.shape[1])) for vector in vectors], dim=1)
