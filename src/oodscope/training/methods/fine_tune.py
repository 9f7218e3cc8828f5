"""Fine-tuning: a pretrained network learns other classes, all of it."""

from typing import ClassVar, Literal

from pydantic import Field
from torch import nn

from oodscope.models.classifier.new_head import replace_head
from oodscope.training.augment.crop import Augment
from oodscope.training.augment.reading import AnyAugment
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.recipe import TrainingFacts


class FineTune(CrossEntropy):
    """Cross-entropy from pretrained weights, with two fresh layers in the place of the last one.

    The defaults are those of cross-validation (arXiv 2509.05778) for ViT-B/16: Adam at a constant 1e-4 without
    weight decay, batches of 64, at most 30 epochs, balanced classes, stopped by validation accuracy with patience 3.
    The paper's code looks at validation images every half epoch and counts looks; here, as in the paper's text, epochs
    are counted. No augmentation is named there, so there is none. ``model`` is any network that ends in one linear
    layer, such as ``create_model("torchvision:vit_b_16", weights="pretrained").model``.

    Parameters
    ----------
    hidden : features between the two fresh layers.
    dropout : before both of them.
    """

    name: ClassVar[str] = "fine_tune"

    epochs: int = Field(default=30, gt=0)
    batch_size: int = Field(default=64, gt=0)
    learning_rate: float = Field(default=1e-4, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    algorithm: Literal["sgd", "adam"] = "adam"
    augment: AnyAugment = Augment(pad=0, flip=False)
    patience: int = Field(default=3, ge=0)
    balanced: bool = True
    hidden: int = Field(default=256, gt=0)
    dropout: float = Field(default=0.2, ge=0, lt=1)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        return replace_head(model, facts.num_classes, hidden=self.hidden, dropout=self.dropout)

    def schedule(self, step: int, steps_per_epoch: int) -> float:
        """Constant after the warm-up: nobody knows beforehand when patience will end."""
        warmup = round(self.warmup_epochs * steps_per_epoch)
        return min(1.0, (step + 1) / warmup) if warmup else 1.0
