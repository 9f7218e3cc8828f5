"""A study that behaves like one of cross-validation, made of random numbers with known effects."""

import numpy as np
import pandas as pd

from oodscope.runs.crossval.run import CrossValidationTable

DETECTORS = ("ebo", "fdbd", "gen", "klm", "knn", "mds", "nnguide", "relation")
METRICS = (
    "tpr5_id_positive_interpolated",
    "auroc",
    "aupr_in_trapezoid",
    "max_f1_id_positive",
    "accuracy_at_90_id_kept",
)
NEAR_AND_FAR = (
    "cifar10/cifar100",
    "cifar10/tiny_imagenet",
    "cifar10/dtd",
    "cifar10/mnist",
    "cifar10/letters",
    "cifar100/cifar10",
    "cifar100/tiny_imagenet",
    "cifar100/dtd",
    "cifar100/mnist",
    "cifar100/letters",
    "supercifar100_id/supercifar100_ood",
    "svhn/cifar10",
    "svhn/mnist",
)


def make_table(
    detectors=DETECTORS,
    metrics=METRICS,
    pairs=11,
    trainings=("plain", "outlier_exposure"),
    repetitions=10,
    folds=5,
    hold_outs=100,
    crossed=(3, 3, 2),
    classes=20,
    seed=0,
):
    """Every value is a level of its cell and detector, moved by the OOD classes tested, the ID split and the training.

    A repetition of folds deals the classes of a cell into groups; a hold-out draws one group.
    """
    rng = np.random.default_rng(seed)
    names = NEAR_AND_FAR[:pairs]
    # levels on the logit scale; a quality per detector that is much smaller than the spread between cells
    quality = np.linspace(0.35, -0.35, len(detectors))[:, None] + 0.25 * rng.normal(size=(len(detectors), 1))
    level = 1.2 + 1.2 * rng.normal(size=(1, len(names) * len(trainings)))
    level = level + quality + 0.12 * rng.normal(size=(len(detectors), len(names) * len(trainings)))
    effect = 0.5 * rng.normal(size=(classes, len(names)))
    cells = [(training, name) for training in trainings for name in names]
    runs, values = [], []

    def record(kind, repetition, fold, group, id_effect, noise, draws=(0, 0, 0)):
        of_classes = np.tile(effect[group].mean(axis=0), len(trainings))
        logits = level + of_classes + id_effect + noise
        runs.append((kind, repetition, fold, *draws))
        values.append([1.0 / (1.0 + np.exp(-(logits + 0.2 * m))) for m in range(len(metrics))])

    shape = (len(detectors), len(cells))
    for repetition in range(repetitions):
        groups = np.array_split(rng.permutation(classes), folds)
        for fold, group in enumerate(groups):
            record(
                "fold", repetition, fold, group, 0.05 * rng.normal(size=(1, len(cells))), 0.05 * rng.normal(size=shape)
            )
    for repetition in range(hold_outs):
        group = rng.permutation(classes)[: classes // folds]
        record("hold_out", repetition, 0, group, 0.05 * rng.normal(size=(1, len(cells))), 0.05 * rng.normal(size=shape))
    splits = 0.08 * rng.normal(size=(crossed[0], 1, len(cells)))
    draws = [rng.permutation(classes)[: classes // folds] for _ in range(crossed[1])]
    for i in range(crossed[0]):
        for j in range(crossed[1]):
            for s in range(crossed[2]):
                record("crossed", 0, 0, draws[j], splits[i], 0.05 * rng.normal(size=shape), (i, j, s))
    return tidy(runs, np.array(values), metrics, detectors, cells)


def tidy(runs, values, metrics, detectors, cells):
    """The table of ``values[run, metric, detector, cell]``."""
    run, metric, detector, cell = (index.ravel() for index in np.indices(values.shape))
    columns = ("kind", "repetition", "fold", "id_draw", "ood_draw", "training_seed")
    told = {name: np.array([each[place] for each in runs])[run] for place, name in enumerate(columns)}
    frame = pd.DataFrame(
        {
            **told,
            "training": np.array([training for training, _ in cells])[cell],
            "pair": np.array([pair for _, pair in cells])[cell],
            "detector": np.array(detectors)[detector],
            "metric": np.array(metrics)[metric],
            "value": values.ravel(),
            "n_id": 2000,
            "n_ood": 1000,
        }
    )
    return CrossValidationTable(frame, {"study": "made of random numbers"})
