"""Stack: the weights of many heads of one shape, side by side, so that one product serves them all."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from oodscope.data.addressed import Draws
from oodscope.models.classifier.head import Head
from oodscope.training.heads.deck import uniform
from oodscope.training.heads.trained import TrainedHead


@dataclass(frozen=True, eq=False)
class Stack:
    """Hidden layers ``[T, D, H]`` with biases ``[T, 1, H]``, outputs ``[T, H, C]`` with biases ``[T, 1, C]``."""

    hidden: Tensor
    hidden_bias: Tensor
    output: Tensor
    output_bias: Tensor

    @classmethod
    def drawn(cls, draws: Draws, width: int, hidden: int, classes: int) -> "Stack":
        """Fresh weights, as ``nn.Linear`` draws them: uniform within one over the root of the inputs."""
        first, second = 1 / math.sqrt(width), 1 / math.sqrt(hidden)
        return cls(
            uniform(draws, "hidden", first, width, hidden),
            uniform(draws, "hidden bias", first, 1, hidden),
            uniform(draws, "output", second, hidden, classes),
            uniform(draws, "output bias", second, 1, classes),
        )

    @classmethod
    def of(cls, heads: Sequence[TrainedHead], scale: Tensor) -> "Stack":
        """The weights of trained heads, for embeddings that are divided by ``scale`` ``[T]`` from now on."""
        hidden = torch.stack([each.hidden_weight.T for each in heads]).to(scale.device)
        return cls(
            hidden * scale[:, None, None],
            torch.stack([each.hidden_bias[None] for each in heads]).to(scale.device),
            torch.stack([each.head.weight.T for each in heads]).to(scale.device),
            torch.stack([each.head.bias[None] for each in heads]).to(scale.device),
        )

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """All weights, in the order of the fields."""
        return self.hidden, self.hidden_bias, self.output, self.output_bias

    def features(self, embeddings: Tensor, factor: Tensor) -> Tensor:
        """``[T, B, H]`` in float32 from ``[T, B, D]`` times ``factor`` ``[T]``, multiplied in their precision."""
        dtype = embeddings.dtype
        # the factor goes to the weights, of which there are fewer than embeddings
        weight = (self.hidden * factor[:, None, None]).to(dtype)
        return torch.baddbmm(self.hidden_bias.to(dtype), embeddings, weight).float().relu()

    def logits(self, features: Tensor, dtype: torch.dtype) -> Tensor:
        """``[T, B, C]`` in float32."""
        return torch.baddbmm(self.output_bias.to(dtype), features.to(dtype), self.output.to(dtype)).float()

    def trainable(self) -> "Stack":
        """The same weights, watched by autograd."""
        return Stack(*(each.detach().requires_grad_() for each in self.tensors))

    @torch.no_grad()
    def take(self, tasks: Tensor) -> "Stack":
        """Copies of these heads."""
        return Stack(*(each[tasks] for each in self.tensors))

    @torch.no_grad()
    def where(self, mask: Tensor, other: "Stack") -> "Stack":
        """Copies of this one's heads where ``mask`` ``[T]`` says so, of the other's elsewhere."""
        return Stack(*(torch.where(mask[:, None, None], a, b) for a, b in zip(self.tensors, other.tensors)))

    def trained(self, scale: Tensor, epochs: list[int], accuracies: list[float | None]) -> list[TrainedHead]:
        """One object per head, on the CPU, for embeddings as they were before the division."""
        hidden, hidden_bias, output, output_bias = (
            each.detach().cpu() for each in (self.hidden / scale[:, None, None], *self.tensors[1:])
        )
        return [
            TrainedHead(
                hidden[row].T.contiguous(),
                hidden_bias[row, 0].clone(),
                Head(output[row].T.contiguous(), output_bias[row, 0].clone()),
                epoch,
                accuracy,
            )
            for row, (epoch, accuracy) in enumerate(zip(epochs, accuracies))
        ]
