"""AdaNeg: negative labels whose meaning follows the images of the stream."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import NegativeCosines
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Needs
from oodscope.detectors.math.neighbors import unit
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.methods.mcm import concept_cosines
from oodscope.detectors.streaming import Described, Mode, StreamDetector


class AdaNeg(StreamDetector):
    r"""NegLabel with proxies: each label is its text together with images of the stream that were taken for it.

    .. math:: s(x) = -\bigl(S_{\mathrm{proxy}}(x) + \lambda\, S_{\mathrm{text}}(x)\bigr), \qquad
              S(x) = \frac1G\sum_g \frac{P}{P + N_g}

    with :math:`P` and :math:`N_g` the sums of :math:`e^{\cos/\tau}` over the classes and over a group of negative
    labels. An image enters the memory of its nearest class where :math:`S_{\mathrm{text}} > t + g(1 - t)`, that of its
    nearest negative label where :math:`S_{\mathrm{text}} < t - gt`; a full memory lets the image of the largest entropy
    go. A proxy is the renormalised sum of the text and its images, each weighted by
    :math:`e^{-\beta(1 - \cos(x, \cdot))}`; :math:`\beta = 0` is their mean.

    Negative labels are dealt out to the groups one by one, as in our NegLabel, so that none is dropped.

    Parameters
    ----------
    temperature, groups : of NegLabel.
    threshold, gap : :math:`t` and :math:`g`.
    memory : images kept for each label.
    beta : 0 for one proxy per label; 5.5 is the authors' value for proxies that follow the image.
    text_weight : :math:`\lambda`.
    """

    name = "adaneg"
    paper = Paper("AdaNeg: Adaptive Negative Proxy Guided OOD Detection", "Zhang & Zhang", "NeurIPS 2024")
    needs = Needs.FEATURES | Needs.HEAD | Needs.NEGATIVES
    cost = Cost.HEAD

    def __init__(
        self,
        mode: Mode = "causal",
        temperature: float = 0.01,
        groups: int = 5,
        threshold: float = 0.5,
        gap: float = 0.5,
        memory: int = 10,
        beta: float = 0.0,
        text_weight: float = 0.1,
    ) -> None:
        self.mode = mode
        self.temperature = temperature
        self.groups = groups
        self.threshold = threshold
        self.gap = gap
        self.memory = memory
        self.beta = beta
        self.text_weight = text_weight

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (NegativeCosines(),)

    def _begin(self) -> None:
        if self.memory < 1 or self.groups < 1:
            raise DetectorError("adaneg: memory and groups are 1 or more")
        self._kept: dict[int, list[tuple[float, Tensor, Tensor]]] = {}

    def _describe(self, batch: Activations) -> Described:
        classes, negatives = concept_cosines(batch), precise(batch[self.probes[0].column])
        known = torch.full((len(classes),), classes.shape[1])  # travels with the rows: how many labels are classes
        cosines = torch.cat([classes, negatives], dim=1)
        log_p = (cosines / self.temperature).log_softmax(dim=1)
        entropy = -(log_p.exp() * log_p).sum(dim=1)
        return precise(unit(batch.features)), cosines, entropy, known

    def _judge(self, *images: Tensor) -> Tensor:
        rows, cosines, _, known = images
        classes = int(known[0])
        adapted = cosines.clone()
        for label, entries in self._kept.items():
            adapted[:, label] = self._proxy(rows, cosines[:, label], entries)
        text = grouped_share(cosines, classes, self.groups, self.temperature)
        return -(grouped_share(adapted, classes, self.groups, self.temperature) + self.text_weight * text)

    def _proxy(self, rows: Tensor, text: Tensor, entries: list[tuple[float, Tensor, Tensor]]) -> Tensor:
        """Cosines of images with the proxy of one label; the text itself is known by its cosines alone."""
        features = torch.stack([feature for _, feature, _ in entries])
        with_text = torch.stack([cosine for _, _, cosine in entries])
        near = torch.cat([text.unsqueeze(1), rows @ features.T], dim=1)
        weights = torch.exp(-self.beta * (1 - near))
        gram = torch.ones(len(entries) + 1, len(entries) + 1, dtype=near.dtype, device=near.device)
        gram[1:, 1:], gram[0, 1:], gram[1:, 0] = features @ features.T, with_text, with_text
        length = ((weights @ gram) * weights).sum(dim=1).clamp(min=torch.finfo(near.dtype).tiny).sqrt()
        return (weights * near).sum(dim=1) / length

    def _remember(self, *images: Tensor) -> None:
        rows, cosines, entropy, known = images
        classes = int(known[0])
        share = grouped_share(cosines, classes, self.groups, self.temperature)
        high = self.threshold + self.gap * (1 - self.threshold)
        low = self.threshold - self.gap * self.threshold
        for number, value in enumerate(share.tolist()):
            if low <= value <= high:
                continue
            part = cosines[number, :classes] if value > high else cosines[number, classes:]
            label = int(part.argmax()) + (0 if value > high else classes)
            entries = self._kept.setdefault(label, [])
            entries.append((float(entropy[number]), rows[number], cosines[number, label]))
            if len(entries) > self.memory:
                # of equal entropies the later one goes: what is known stays
                entries.pop(max(range(len(entries)), key=lambda place: (entries[place][0], place)))


def grouped_share(cosines: Tensor, classes: int, groups: int, temperature: float) -> Tensor:
    """NegLabel's score of being ID, ``[N]``: the share of the classes in each group's sum, averaged over groups."""
    scaled = cosines / temperature
    known, negatives = scaled[:, :classes].logsumexp(dim=1), scaled[:, classes:]
    count = min(groups, negatives.shape[1])
    shares = [torch.sigmoid(known - negatives[:, group::count].logsumexp(dim=1)) for group in range(count)]
    return torch.stack(shares, dim=1).mean(dim=1)
