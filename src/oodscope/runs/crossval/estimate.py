"""How long a cross-validation will take, from a few images, before it starts."""

from collections.abc import Sequence
from dataclasses import dataclass

from oodscope.document.wording import duration
from oodscope.runs.crossval.draws import Pair, all_draws, distinct_sets
from oodscope.runs.crossval.plan import CrossValidationPlan
from oodscope.runs.crossval.trainer import Trainer


@dataclass(frozen=True)
class Estimate:
    """What a plan asks for, and how long it takes at most: trainings may stop early, detectors come on top.

    Parameters
    ----------
    networks : that are trained, with outliers or without.
    pass_seconds : of images through networks.
    train_seconds : of all trainings, at their largest number of epochs.
    """

    networks: int
    pass_seconds: float
    train_seconds: float

    @property
    def seconds(self) -> float:
        return self.pass_seconds + self.train_seconds

    def __str__(self) -> str:
        return f"at most {duration(self.seconds)} (passes {duration(self.pass_seconds)}), detectors on top"


def estimate(plan: CrossValidationPlan, pairs: Sequence[Pair], trainer: Trainer) -> Estimate:
    """Measure a few images and an epoch of the trainer, and multiply.

    Parameters
    ----------
    pairs : what is folded; of several ID sets the first is measured.
    """
    draws = sum(1 for _ in all_draws(plan))
    price = trainer.price(pairs[0].id_set)
    of_half = 0.5 if plan.disjoint_truth else 1.0
    known = {pair.id_set.name: pair.id_set for pair in pairs}
    trained = of_half * (1 - 1 / plan.folds) * (1 - plan.val_share)
    exposed = pairs if plan.outlier_exposure else ()
    epochs = sum(len(images) for images in known.values()) * price.epochs
    epochs += sum(len(pair.id_set) for pair in exposed) * price.exposed_epochs
    if price.embeds_once:
        passes = float(sum(len(images) for images in distinct_sets(pairs)))
    else:
        # every network scores all ID images of its draw and the tested outliers of its pairs
        passes = sum(len(images) for images in known.values()) + sum(len(pair.id_set) for pair in exposed)
        passes += (2 if exposed else 1) * sum(len(pair.ood_set) for pair in pairs) / plan.folds
        passes *= draws * of_half
    networks = draws * (len(known) + len(exposed))
    return Estimate(networks, passes * price.per_pass, draws * trained * epochs * price.per_epoch)
