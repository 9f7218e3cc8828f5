"""ATOM, NTOM and ROWL: one output more than classes, for outliers; mined, attacked, or both."""

from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oodscope.base.paper import Paper
from oodscope.models.classifier.branches import REJECT, with_branches
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.perturbation import Attack, Ball
from oodscope.training.recipe import Batch, Step, TrainingFacts

if TYPE_CHECKING:
    from oodscope.training.loop.streams import Streams

_MINED = "mined_outliers"
_WALK = 256


def all_outputs(output: dict[str, Tensor]) -> Tensor:
    """The logits of all classes and, last, that of none of them."""
    return torch.cat([output["logits"], output[REJECT]], dim=1)


def rejected(logits: Tensor) -> Tensor:
    """The label of the last output, for each row of logits."""
    return torch.full((len(logits),), logits.shape[1] - 1, device=logits.device)


def mined(confidence: Tensor, skip: float, take: int) -> Tensor:
    """Rows of the outliers that an epoch shows: those least rejected, without the first ``skip`` of them.

    The very first are probably known images that lie among the outliers.

    Parameters
    ----------
    confidence : how surely each outlier is rejected.
    skip : share of the outliers that is left out.
    take : rows; fewer where there are no more.
    """
    begin = int(skip * len(confidence))
    return confidence.argsort(stable=True)[begin : begin + take]


class NTOM(CrossEntropy):
    r"""Cross-entropy over one class more, for outliers, of which each epoch shows the informative ones.

    .. math:: L = \mathrm{CE}(z(x), y) + \beta\,\mathrm{CE}(z(x_{\mathrm{out}}), K + 1)

    Before each epoch all outliers are sorted by how surely they are rejected; the ``skip`` least sure are left out, and
    of the next an epoch sees as many as it has room for. The rows are a buffer of the network. Outliers are sorted as
    they are, not through the views that are then shown (the authors sort views). A pool that is no larger than what an
    epoch shows is shown whole. The score is ``reject``.

    Parameters
    ----------
    weight : :math:`\beta`.
    skip : share of the outliers that look most like known images; .125 in the paper.
    share : outliers of an epoch for each training image, before they are repeated.
    """

    name: ClassVar[str] = "ntom"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "ATOM: Robustifying Out-of-distribution Detection Using Outlier Mining", "Chen et al.", "ECML PKDD 2021"
    )
    cost: ClassVar[float | None] = 3.0
    detectors: ClassVar[tuple[str, ...]] = ("reject", "msp")

    epochs: int = Field(default=30, gt=0)
    batch_size: int = Field(default=64, gt=0)
    weight_decay: float = Field(default=1e-4, ge=0)
    decay: Literal["cosine", "steps", "constant"] = "steps"
    milestones: tuple[float, ...] | None = (0.5, 0.75, 0.9)
    ood_batch_size: int = Field(default=128, gt=0)
    weight: float = Field(default=1.0, ge=0)
    skip: float = Field(default=0.125, ge=0, lt=1)
    share: float = Field(default=2.0, gt=0)

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        model = with_branches(model, {REJECT: 1})
        room = max(1, round(self.share * facts.n_train))
        left = facts.n_ood - int(self.skip * facts.n_ood)
        model.register_buffer(_MINED, torch.arange(min(room, left)))
        return model

    @torch.no_grad()
    def start_epoch(self, model: nn.Module, epoch: int, streams: "Streams") -> None:
        assert streams.ood is not None  # there is always one where ood_batch_size is above zero
        sure = [all_outputs(model(batch.images)).softmax(dim=1)[:, -1] for batch in streams.ood.walk(_WALK)]
        rows = model.get_buffer(_MINED)
        rows.copy_(mined(torch.cat(sure), self.skip, len(rows)))

    def outliers(self, model: nn.Module) -> Tensor | None:
        return model.get_buffer(_MINED)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        outliers = self.shown_outliers(model, batch)
        output = model(torch.cat([batch.images, outliers]))
        logits = all_outputs(output)
        known, unknown = logits[: len(batch.images)], logits[len(batch.images) :]
        loss = cross_entropy(known, batch.labels) + self.weight * cross_entropy(unknown, rejected(unknown))
        return Step(loss, output["logits"][: len(batch.images)])

    def shown_outliers(self, model: nn.Module, batch: Batch) -> Tensor:
        """The outliers of a step, as the network sees them."""
        assert batch.ood is not None  # there is always one where ood_batch_size is above zero
        return batch.ood.images


def _above_zero(epsilon: float, without: str) -> float:
    if not epsilon > 0:
        raise ValueError(f"must be above 0, not {epsilon:g}: without a radius this is the recipe {without}")
    return epsilon


class ATOM(NTOM):
    r"""NTOM with half of the outliers attacked: moved within a ball to where they are rejected least.

    .. math:: \delta = \arg\max_{\lVert\delta\rVert_\infty\le\varepsilon}\mathrm{CE}(z(x_{\mathrm{out}}+\delta), K + 1)

    The second half of each batch of outliers begins at a random image of the ball; of all images visited the worst is
    shown. The authors take 5 steps of 2/255 within 8/255; the default is its compact form.

    Parameters
    ----------
    epsilon : :math:`\varepsilon` in pixels of [0, 1], above 0: a radius of 0 is the recipe ``ntom``.
    attack_steps, attack_step : of the ascent; a step's length in pixels of [0, 1].
    """

    name: ClassVar[str] = "atom"
    recordable: ClassVar[bool] = True
    cost: ClassVar[float | None] = 5.1

    epsilon: float = 8 / 255
    attack_steps: int = Field(default=3, ge=0)
    attack_step: float = Field(default=3 / 255, gt=0)

    @field_validator("epsilon")
    @classmethod
    def _check_radius(cls, epsilon: float) -> float:
        return _above_zero(epsilon, "ntom")

    def shown_outliers(self, model: nn.Module, batch: Batch) -> Tensor:
        outliers = super().shown_outliers(model, batch)
        clean = len(outliers) // 2

        def objective(images: Tensor) -> Tensor:
            logits = all_outputs(model(images))
            return cross_entropy(logits, rejected(logits), reduction="none")

        attack = Attack(Ball("linf", self.epsilon), self.attack_steps, self.attack_step, random_start=True, keep="best")
        moved = attack(model, objective, outliers[clean:], batch.scale, batch.draws)
        return torch.cat([outliers[:clean], moved])


class ROWL(CrossEntropy):
    r"""One class more, for outliers, and all images of all classes attacked.

    .. math:: L = \mathrm{CE}(z(x), y) + \beta\,\mathrm{CE}(z(x + \delta), y)

    with known images and outliers in one batch and :math:`\delta` in an :math:`\ell_\infty` ball, towards a random
    other class. The outliers are as many as one class has. In the released code an image counts as attacked only if the
    negative loss of a target exceeds the loss of its own class, which never happens: what it trains is twice the clean
    loss (recipe ``rowl_released``). The score is ``reject``.

    Parameters
    ----------
    weight : :math:`\beta`.
    epsilon : in pixels of [0, 1], above 0.
    attack_steps, attack_step : of the ascent; a step's length in pixels of [0, 1].
    """

    name: ClassVar[str] = "rowl"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "Analyzing the Robustness of Open-World Machine Learning", "Sehwag et al.", "AISec 2019"
    )
    cost: ClassVar[float | None] = 6.0
    detectors: ClassVar[tuple[str, ...]] = ("reject", "msp")

    epochs: int = Field(default=30, gt=0)
    weight_decay: float = Field(default=1e-4, ge=0)
    decay: Literal["cosine", "steps", "constant"] = "steps"
    milestones: tuple[float, ...] | None = (0.5, 0.75, 0.9)
    ood_batch_size: int = Field(default=13, gt=0)
    weight: float = Field(default=1.0, ge=0)
    epsilon: float = 8 / 255
    attack_steps: int = Field(default=5, ge=0)
    attack_step: float = Field(default=2 / 255, gt=0)

    @field_validator("epsilon")
    @classmethod
    def _check_radius(cls, epsilon: float) -> float:
        return _above_zero(epsilon, "rowl_released")

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        return with_branches(model, {REJECT: 1})

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        assert batch.ood is not None  # there is always one where ood_batch_size is above zero
        images = torch.cat([batch.images, batch.ood.images])
        output = model(images)
        logits = all_outputs(output)
        labels = torch.cat([batch.labels, rejected(logits)[len(batch.labels) :]])
        again = self.second_term(model, batch, images, logits, labels)
        loss = cross_entropy(logits, labels) + self.weight * again
        return Step(loss, output["logits"][: len(batch.labels)])

    def second_term(self, model: nn.Module, batch: Batch, images: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        """The cross-entropy of the attacked images."""
        assert batch.draws is not None, "the loop gives each batch its random numbers"
        outputs = logits.shape[1]
        ahead = torch.randint(1, outputs, labels.shape, generator=batch.draws, device=batch.draws.device)
        target = (labels + ahead.to(labels.device)) % outputs

        def objective(there: Tensor) -> Tensor:
            return -cross_entropy(all_outputs(model(there)), target, reduction="none")

        attack = Attack(Ball("linf", self.epsilon), self.attack_steps, self.attack_step, random_start=True, keep="best")
        moved = attack(model, objective, images, batch.scale, batch.draws)
        return cross_entropy(all_outputs(model(moved)), labels)


class ReleasedROWL(ROWL):
    r"""ROWL as its released code trains it: twice the clean loss, because no attacked image is ever kept.

    .. math:: L = (1 + \beta)\,\mathrm{CE}(z(x), y)

    Beside ``rowl`` it says how much of the published robustness is the attack's.
    """

    name: ClassVar[str] = "rowl_released"
    recordable: ClassVar[bool] = True
    cost: ClassVar[float | None] = 1.1

    def second_term(self, model: nn.Module, batch: Batch, images: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(logits, labels)
