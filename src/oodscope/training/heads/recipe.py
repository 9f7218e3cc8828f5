"""HeadRecipe: how a two-layer head is trained on embeddings that never change."""

from typing import Any, Literal

from pydantic import Field

from oodscope.base.config import StrictModel


class HeadRecipe(StrictModel):
    r"""A small classifier on frozen embeddings, as the cross-validation paper puts it on ViT-B/16.

    .. math:: h = \max(0,\; V\,\mathrm{drop}(x) + a), \qquad \mathrm{logits} = W\,\mathrm{drop}(h) + b

    Features are :math:`h`, after the ReLU, because ``logits = features · Wᵀ + b`` must hold for the detectors that
    shape features or read the head. What stands before the ReLU, which the paper hands to detectors of distances, is
    the column ``pre_activation``. Adam with a constant rate, class weights that let every class count alike, and the
    weights of the best epoch on validation rows. Embeddings are divided by the root mean square of the task's training
    rows (and the division is folded into the weights afterwards), so that a learning rate means the same for every
    backbone.

    Outlier exposure (Hendrycks et al., ICLR 2019) continues a trained head for ``oe_epochs`` with

    .. math:: L = -\log p_y(x) + \lambda\,\mathrm{KL}(\mathrm{uniform} \,\Vert\, p(x_{\mathrm{out}}))

    Parameters
    ----------
    hidden : features between the two layers.
    dropout : the share of embedding entries, and of features, that a training step does not see.
    learning_rate : of Adam.
    batch_size : the most rows of one step; the rows of an epoch are dealt into batches of nearly equal size.
    epochs : at most so many passes over the training rows.
    patience : stop after so many epochs without a better validation accuracy; 0 trains all epochs and keeps the last.
    balanced : weight classes by the inverse of their frequency among the task's training rows.
    oe_weight : :math:`\lambda`. The paper's text says .5, its code 1.
    oe_share : outliers drawn once per task, as a share of its training rows.
    oe_epochs : passes of the fine-tuning; all are made, and the last weights kept.
    precision : ``bf16-mixed`` keeps embeddings and products in bfloat16, weights and losses in float32.
    """

    hidden: int = Field(default=256, gt=0)
    dropout: float = Field(default=0.2, ge=0, lt=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    batch_size: int = Field(default=512, gt=0)
    epochs: int = Field(default=30, gt=0)
    patience: int = Field(default=3, ge=0)
    balanced: bool = True
    oe_weight: float = Field(default=1.0, ge=0)
    oe_share: float = Field(default=0.1, gt=0)
    oe_epochs: int = Field(default=5, gt=0)
    precision: Literal["32-true", "bf16-mixed"] = "32-true"

    def describe(self) -> dict[str, Any]:
        """The method and all its hyper-parameters, as JSON."""
        return {"method": type(self).__name__, **self.model_dump(mode="json")}
