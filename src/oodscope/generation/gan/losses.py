r"""The losses of the game, logistic and hinge, and the penalty that keeps it playable."""

import torch
from torch import Tensor, nn
from torch.nn.functional import relu, softplus


def discriminator_loss(real: Tensor, fake: Tensor) -> Tensor:
    r""":math:`-\log σ(D(x)) - \log(1 - σ(D(g(z))))`, from logits, averaged over each batch."""
    return softplus(-real).mean() + softplus(fake).mean()


def generator_loss(fake: Tensor) -> Tensor:
    r""":math:`-\log σ(D(g(z)))`: non-saturating, it pulls hardest where the discriminator is sure of itself."""
    return softplus(-fake).mean()


def gradient_penalty(discriminator: nn.Module, images: Tensor) -> Tensor:
    r"""R1 without its weight: :math:`\tfrac12 E\lVert \nabla_x D(x) \rVert^2` at real images.

    A discriminator that is flat around real images lets the generator come to rest there (Mescheder et al., "Which
    Training Methods for GANs do actually Converge?", ICML 2018).
    """
    images = images.detach().requires_grad_(True)
    (slope,) = torch.autograd.grad(discriminator(images).sum(), images, create_graph=True)
    return 0.5 * slope.square().sum((1, 2, 3)).mean()


def hinge_discriminator_loss(real: Tensor, fake: Tensor) -> Tensor:
    r""":math:`\max(0, 1 - D(x)) + \max(0, 1 + D(g(z)))`: what is judged rightly by a margin teaches no more."""
    return relu(1 - real).mean() + relu(1 + fake).mean()


def hinge_generator_loss(fake: Tensor) -> Tensor:
    r""":math:`-D(g(z))`."""
    return -fake.mean()
