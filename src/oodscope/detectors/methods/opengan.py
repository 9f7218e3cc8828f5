"""OpenGAN: a discriminator that learnt to separate features of real images from generated ones."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.bank import picked_rows, remembered
from oodscope.detectors.math.numbers import precise
from oodscope.metrics.ranking.ranking import Ranking

SLOPE = 0.2
"""Of the leaky ReLU below zero."""

Layers = list[tuple[Tensor, Tensor]]


def perceptron(widths: Sequence[int], generator: torch.Generator) -> nn.Sequential:
    """Linear layers with batch normalisation and leaky ReLU between them; the global random state is left alone."""
    parts: list[nn.Module] = []
    for ins, outs in pairwise(widths[:-1]):
        # batch normalisation would take a bias out again
        parts += [_linear(ins, outs, bias=False), nn.BatchNorm1d(outs), nn.LeakyReLU(SLOPE)]
    last = _linear(widths[-2], widths[-1], bias=True)
    nn.init.zeros_(last.bias)
    network = nn.Sequential(*parts, last)
    for part in network:
        if isinstance(part, nn.Linear):
            nn.init.kaiming_normal_(part.weight, SLOPE, generator=generator)
    return network


def _linear(ins: int, outs: int, bias: bool) -> nn.Linear:
    """A layer with nothing in it yet: filling it at once would draw from the global random state."""
    return nn.Linear(ins, outs, bias=bias, device="meta").to_empty(device="cpu")


def folded(network: nn.Sequential) -> Layers:
    """Weights and biases of a trained perceptron, batch normalisation multiplied in, in float64."""
    layers: Layers = []
    for part in network:
        if isinstance(part, nn.Linear):
            weight = part.weight.detach().double()
            layers.append((weight, weight.new_zeros(len(weight)) if part.bias is None else part.bias.detach().double()))
        elif isinstance(part, nn.BatchNorm1d):
            assert part.running_mean is not None and part.running_var is not None, "batches are tracked"
            gain = part.weight.detach().double() / (part.running_var.double() + part.eps).sqrt()
            weight, bias = layers[-1]
            shifted = (bias - part.running_mean.double()) * gain + part.bias.detach().double()
            layers[-1] = (weight * gain.unsqueeze(1), shifted)
    return layers


def answer(layers: Layers, points: Tensor) -> Tensor:
    """The single output for each point."""
    for weight, bias in layers[:-1]:
        points = nn.functional.leaky_relu(points @ weight.T + bias, SLOPE)
    weight, bias = layers[-1]
    return (points @ weight.T + bias).squeeze(1)


class Adam:
    """Adam with the betas that adversarial networks want.

    Not torch's: building that one imports a compiler, which takes longer than all of the training.
    """

    def __init__(self, network: nn.Module, lr: float, betas: tuple[float, float] = (0.5, 0.999)) -> None:
        self.parameters = list(network.parameters())
        self.lr, self.betas, self.count = lr, betas, 0
        self.means = [torch.zeros_like(part) for part in self.parameters]
        self.squares = [torch.zeros_like(part) for part in self.parameters]

    def descend(self, loss: Tensor) -> None:
        """One step down the gradient of ``loss``."""
        gradients = torch.autograd.grad(loss, self.parameters)
        self.count += 1
        first, second = (1 - beta**self.count for beta in self.betas)
        with torch.no_grad():
            for part, gradient, mean, square in zip(self.parameters, gradients, self.means, self.squares):
                mean.lerp_(gradient, 1 - self.betas[0])
                square.lerp_(gradient.square(), 1 - self.betas[1])
                part.addcdiv_(mean, (square / second).sqrt_().add_(1e-8), value=-self.lr / first)


BATCH, ROUND, NOISE, JUDGED = 128, 25, 64, 1000
"""Images in a batch, batches in a round, width of the generator's noise, images that a discriminator is judged on."""


class OpenGAN(Detector):
    r"""Log-odds that a feature was invented, says the discriminator of a generative adversarial network.

    .. math:: s(x) = -D\bigl((h-\mu)/\sigma\bigr)

    with :math:`D` the logit of "real". A generator invents standardised features to deceive :math:`D`; how well
    :math:`D` detects outliers goes up and down meanwhile, so after every round of 25 batches it is judged, and
    the best one is kept: by its AUROC between validation images and validation outliers. Where there are no
    outliers, validation features stand in whose coordinates were shuffled between images.

    The layers are the paper's for features, scaled by ``width``: 8, 4, 2, 1 times as wide in the discriminator,
    8, 4, 2, 4 in the generator, with batch normalisation and leaky ReLU. The generator ends without tanh, as
    standardised features have no bounds; real and invented features share the discriminator's batches, so that
    its statistics are those it will score with.

    Parameters
    ----------
    rounds : of 25 batches of 128 training images each.
    width : of the narrowest layer; 64 in the paper, narrower here to be quick on a CPU.
    lr : of Adam, for both networks, with betas 0.5 and 0.999; larger than the usual 1e-4, as there are few batches.
    rows : how many training images are used, at most.
    seed : images, first weights, batches and noise. On one CPU the fit can be repeated exactly.
    """

    name = "opengan"
    paper = Paper("OpenGAN: Open-Set Recognition via Open Data Generation", "Kong & Ramanan", "ICCV 2021")
    needs = Needs.FEATURES | Needs.TRAIN
    cost = Cost.TRAINING

    def __init__(self, rounds: int = 10, width: int = 16, lr: float = 3e-4, rows: int = 20_000, seed: int = 0) -> None:
        self.rounds = rounds
        self.width = width
        self.lr = lr
        self.rows = rows
        self.seed = seed

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        for key, least in (("rounds", 1), ("width", 1), ("rows", 4)):
            if getattr(self, key) < least:
                raise DetectorError(f"opengan: {key} must be at least {least}, not {getattr(self, key)}")
        moments = train.moments(self.device)
        spread = moments.covariance.diagonal().clamp(min=0).sqrt()
        self.mean_ = precise(moments.mean.to(self.device))
        self.scale_ = precise(torch.where(spread > 0, spread, 1.0).to(self.device))
        known = self._some(train, self.rows)
        if len(known) < 2:
            raise DetectorError("opengan: one training image is too few to learn from")
        if val is train:
            held_out = max(1, min(JUDGED, len(known) // 10))
            known, inside = known[held_out:], known[:held_out]
        else:
            inside = self._some(val, JUDGED)
        outside = _shuffled(inside, self.seed) if ood_val is None else self._some(ood_val, JUDGED)
        for index, (weight, bias) in enumerate(self._train(known, inside, outside)):
            setattr(self, f"weight{index}_", precise(weight))
            setattr(self, f"bias{index}_", precise(bias))

    def _score(self, batch: Activations) -> Tensor:
        layers = [(getattr(self, f"weight{index}_"), getattr(self, f"bias{index}_")) for index in range(5)]
        return -answer(layers, self._standardised(batch.features))

    def _standardised(self, features: Tensor) -> Tensor:
        return (precise(features) - self.mean_) / self.scale_

    def _some(self, part: Activations, count: int) -> Tensor:
        chosen = picked_rows(self.name, part, min(1.0, count / len(part)), self.seed)
        return remembered(part, "features", chosen, self.device, lambda h: self._standardised(h).float())

    def _train(self, known: Tensor, inside: Tensor, outside: Tensor) -> Layers:
        generator = torch.Generator().manual_seed(self.seed)
        w, dim = self.width, known.shape[1]
        critic = perceptron((dim, 8 * w, 4 * w, 2 * w, w, 1), generator).to(self.device)
        inventor = perceptron((NOISE, 8 * w, 4 * w, 2 * w, 4 * w, dim), generator).to(self.device)
        critics, inventors = Adam(critic, self.lr), Adam(inventor, self.lr)
        best, best_auroc = folded(critic), -1.0
        for _ in range(self.rounds):
            for _ in range(ROUND):
                picks = torch.randint(len(known), (BATCH,), generator=generator)
                noise = torch.randn(BATCH, NOISE, generator=generator).to(self.device)
                invented = inventor(noise)
                critic.train()
                real, fake = (
                    critic(torch.cat([known[picks.to(self.device)], invented.detach()])).squeeze(1).split(BATCH)
                )
                critics.descend(softplus(-real).mean() + softplus(fake).mean())
                critic.eval()
                inventors.descend(softplus(-critic(invented)).mean())
            layers = folded(critic)
            scores = [-answer(layers, part.double()).cpu().numpy() for part in (inside, outside)]
            if (auroc := Ranking(scores[0], scores[1]).auroc) > best_auroc:
                best, best_auroc = layers, auroc
        return best


def _shuffled(points: Tensor, seed: int) -> Tensor:
    """Every coordinate from another row: what is usual one by one, and unusual together."""
    orders = torch.rand(points.shape, generator=torch.Generator().manual_seed(seed)).argsort(dim=0)
    return points.gather(0, orders.to(points.device))
