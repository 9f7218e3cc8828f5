"""Detectors with a network of their own: reconstruction errors, likelihoods, and corrections of likelihoods."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.own import CompressedLength, OwnScore
from oodscope.activations.probes.probe import Probe
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.data.addressed import Draws, content_keys
from oodscope.detectors.imagescore import HOME, ImageScore
from oodscope.detectors.math.numbers import precise
from oodscope.models.density.glow import Glow

COMPRESSORS = ("png", "jpeg2000")
BACKGROUND = "runs/background/{recipe}-seed0"
LIKELIHOODS = ("glow", "pixelcnn")


class AutoencoderError(ImageScore):
    r"""Mean squared error of an autoencoder's reconstruction.

    .. math:: s(x) = \tfrac1D \lVert x - g(f(x)) \rVert^2

    Known to fail where outliers are smoother than the training images: they are reconstructed better.

    Parameters
    ----------
    network : the folder or file that ``oodscope train --recipe autoencoder`` wrote.
    """

    name = "autoencoder"
    recipe = "autoencoder"
    kinds = ("autoencoder",)
    paper = Paper(
        "Evaluating Out-of-Distribution Detectors Through Adversarial Generation of Outliers",
        "Yoon et al.",
        "arXiv 2208.10940",
    )

    def __init__(self, network: str = HOME.format(recipe="autoencoder")) -> None:
        super().__init__(network)


class GlowLikelihood(ImageScore):
    r"""Bits per dimension of a flow, every pixel at the centre of its bin unless noise says otherwise.

    .. math:: s(x) = -\tfrac1D \log_2 p(x), \qquad \log p(x) = \log \mathcal N(z) + \sum \log |\det J|

    Known to fail where outliers are smoother than the training images: they are more likely (Nalisnick et al., "Do Deep
    Generative Models Know What They Don't Know?", ICLR 2019).

    Parameters
    ----------
    network : the folder or file that ``oodscope train --recipe glow`` wrote.
    noise : mean over so many random places of each pixel in its bin, which bounds the code length of the stored levels;
        the places depend on the image alone, not on its batch. 0 takes the centre of the bin.
    parity : every pixel at the lower end of its bin, as the evaluation of EvG scores flows: dequantised in training,
        not dequantised in scoring.
    """

    name = "glow"
    recipe = "glow"
    kinds = ("glow",)
    paper = Paper("Glow: Generative Flow with Invertible 1x1 Convolutions", "Kingma & Dhariwal", "NeurIPS 2018")

    def __init__(self, network: str = HOME.format(recipe="glow"), noise: int = 0, parity: bool = False) -> None:
        super().__init__(network)
        self.noise = noise
        self.parity = parity

    def own_score(
        self, parameter: str = "network", form: str = "", score: Callable[[Any, Tensor], Tensor] | None = None
    ) -> OwnScore:
        if self.noise < 0 or (self.noise and self.parity):
            raise DetectorError(f"{self.name}: noise must be 0 or more, and 0 with parity, not {self.noise}")
        form = f"noise={self.noise}" if self.noise else "parity" if self.parity else ""
        return super().own_score(parameter, form, self._bits if form else None)

    def _bits(self, flow: Glow, pixels: Tensor) -> Tensor:
        if self.parity:
            return flow.placed(pixels, 0.0)
        draws = Draws(0, "dequantised", content_keys(pixels.detach()))
        shape = pixels.shape[1:]
        places = (draws.uniform(f"draw {number}", *shape).to(pixels) for number in range(self.noise))
        return torch.stack([flow.placed(pixels, place) for place in places]).mean(dim=0)


class PixelCNNLikelihood(ImageScore):
    r"""Bits per dimension of a PixelCNN++.

    .. math:: s(x) = -\tfrac1D \sum_i \log_2 P(x_i \mid x_{<i})

    Parameters
    ----------
    network : the folder or file that ``oodscope train --recipe pixelcnn`` wrote.
    """

    name = "pixelcnn"
    recipe = "pixelcnn"
    kinds = ("pixelcnn",)
    paper = Paper(
        "PixelCNN++: Improving the PixelCNN with Discretized Logistic Mixture Likelihood and Other Modifications",
        "Salimans et al.",
        "ICLR 2017",
    )

    def __init__(self, network: str = HOME.format(recipe="pixelcnn")) -> None:
        super().__init__(network)


class NormalizedAutoencoder(ImageScore):
    r"""Reconstruction error of an autoencoder that was trained to reconstruct its own samples badly.

    .. math:: s(x) = E(x) = \tfrac1D \lVert x - g(f(x)) \rVert^2, \qquad p(x) \propto e^{-E(x)/T}

    Parameters
    ----------
    network : the folder or file that ``oodscope train --recipe nae`` wrote.
    """

    name = "nae"
    recipe = "nae"
    kinds = ("nae",)
    paper = Paper("Autoencoding Under Normalization Constraints", "Yoon et al.", "ICML 2021")

    def __init__(self, network: str = HOME.format(recipe="nae")) -> None:
        super().__init__(network)


class InputComplexity(ImageScore):
    r"""A likelihood less the complexity of the image, both in bits per dimension.

    .. math:: s(x) = -\tfrac1D \log_2 p(x) - \tfrac8D L(x)

    :math:`L` is the length in bytes of a lossless file, so the score is the log-ratio of a general-purpose compressor's
    and the model's likelihood. A file has no gradient: only black-box searches attack it.

    Parameters
    ----------
    network : of a likelihood, ``glow`` or ``pixelcnn``.
    compressor : ``png`` or ``jpeg2000``.
    """

    name = "input_complexity"
    recipe = "glow"
    kinds = LIKELIHOODS
    paper = Paper(
        "Input complexity and out-of-distribution detection with likelihood-based generative models",
        "Serrà et al.",
        "ICLR 2020",
    )

    def __init__(self, network: str = HOME.format(recipe="glow"), compressor: str = "png") -> None:
        super().__init__(network)
        self.compressor = compressor

    @property
    def probes(self) -> tuple[Probe, ...]:
        if self.compressor not in COMPRESSORS:
            raise DetectorError(
                f"{self.name}: compressor must be one of {', '.join(COMPRESSORS)}, not {self.compressor!r}"
            )
        return (*super().probes, CompressedLength(self.compressor))

    def _score(self, batch: Activations) -> Tensor:
        bits, length = (precise(batch[probe.column]).flatten() for probe in self.probes)
        return bits - length


class LikelihoodRatio(ImageScore):
    r"""A likelihood against that of a model of backgrounds, both in bits per dimension.

    .. math:: s(x) = -\tfrac1D \bigl(\log_2 p(x) - \log_2 p_0(x)\bigr)

    :math:`p_0` was trained like :math:`p` with a share of the pixel values replaced by random ones, and so learnt what
    does not depend on the object.

    Parameters
    ----------
    network : of a likelihood, ``glow`` or ``pixelcnn``.
    background : of the same recipe with ``mutation`` above 0.
    """

    name = "likelihood_ratio"
    recipe = "pixelcnn"
    kinds = LIKELIHOODS
    paper = Paper("Likelihood Ratios for Out-of-Distribution Detection", "Ren et al.", "NeurIPS 2019")

    def __init__(
        self,
        network: str = HOME.format(recipe="pixelcnn"),
        background: str = BACKGROUND.format(recipe="pixelcnn"),
    ) -> None:
        super().__init__(network)
        self.background = background

    @property
    def networks(self) -> dict[str, str]:
        return {"network": self.network, "background": self.background}

    def missing(self, parameter: str) -> str:
        if parameter == "network":
            return super().missing(parameter)
        return (
            f"needs a second network, of backgrounds, and there is none in {self.background}: train one "
            f"(oodscope train --recipe {self.recipe} --set mutation=0.1 --output runs/background --benchmark NAME), or "
            "name another (background=PATH)"
        )

    def _score(self, batch: Activations) -> Tensor:
        own, background = (precise(batch[probe.column]).flatten() for probe in self.probes)
        return own - background
