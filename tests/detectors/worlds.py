"""Small worlds of activations on which detectors and their twins must agree."""

import numpy as np

from oodscope.activations.activations import Activations
from oodscope.activations.probes.own import OwnScore
from oodscope.activations.probes.taps import Output


def world(seed=0, n=300, classes=5, width=12, offset=0.0, scale=1.0, ties=False, zeros=False):
    """Training, validation and test rows of a made-up network, as float64 arrays of one dictionary each."""
    rng = np.random.default_rng(seed)
    weight, bias = rng.normal(size=(classes, width)), rng.normal(size=classes)
    centres = rng.normal(size=(classes, width)) * 2

    def rows(count, spread):
        labels = np.arange(count) % classes
        features = np.abs(centres[labels] + rng.normal(size=(count, width)) * spread) * scale + offset
        if ties:
            features = features.round()
        if zeros:
            features[::7] = 0.0
        # what the network stores is float32; the twins start from the same numbers
        features = stored(features)
        logits = stored(features @ weight.T + bias)
        moved = stored(np.abs(features + rng.normal(size=features.shape) * 0.1 * scale))
        maps = stored(np.abs(rng.normal(size=(count, 3, width)) + centres[labels][:, None]) * scale)
        # the first of three stages is narrower than the others
        maps[:, 0, width // 2 :] = 0
        return {
            "features": features,
            "logits": logits,
            "labels": labels,
            "perturbed": stored(logits * 1.01 + 0.1),
            "perturbed_features": moved,
            "maps": maps,
            "gram": stored(np.concatenate([maps**2, maps**3 / scale], axis=2)),
            "rank_reduced": stored(logits[:, None] * np.array([[[0.7], [0.6]]]) + 0.1),
            # what negative labels answer, in logarithms at a temperature of 0.01: sometimes more than the classes
            "negative_sums": stored(np.random.default_rng(count).uniform(20, 110, size=(count, 3))),
            "local": stored(np.random.default_rng(count + 4).uniform(0.2, 0.4, size=(count, 1))),
            "pair_matches": stored(np.random.default_rng(count + 5).uniform(0, 1, size=(count, 1))),
            "confidence": stored(logits.max(axis=1, keepdims=True) - logits.mean(axis=1, keepdims=True)),
            "second": stored(logits[:, ::-1] * 0.5),
            "others": stored(-np.random.default_rng(count).exponential(size=(count, 3))),
            "numerators": stored(np.tanh(logits)),
            "joint": stored(logits * 0.3 + 0.1),
            "reject": stored(logits.mean(axis=1, keepdims=True) - 0.5 * logits.max(axis=1, keepdims=True)),
            "certified": stored(np.random.default_rng(count).uniform(0.1, 1, size=(count, 1))),
            "turned": stored(np.random.default_rng(count).normal(size=(count, 4, 7)) + 1.5),
            "variance": stored(np.random.default_rng(count).exponential(size=(count, 1))),
            "turns": stored(np.random.default_rng(count).exponential(size=(count, 4))),
            "members": stored(logits[:, None] + rng.normal(size=(count, 4, classes))),
            # of mixtures, some features differ more than others
            "mixed": stored(np.repeat(moved[:, None], 3, axis=1) * np.linspace(0.5, 2, width)),
            # a score of logits at the steps of a walk, under noise, under corruptions
            "pushed": stored(np.random.default_rng(count + 4).uniform(size=(count, 4))),
            "noisy": stored(np.random.default_rng(count + 5).uniform(size=(count, 25))),
            "corrupted": stored(np.random.default_rng(count + 6).uniform(size=(count, 4))),
            # bits per dimension of a network of a detector's own, of one of backgrounds, of a compressed file
            "own_score": stored(3 + np.random.default_rng(count + 1).normal(size=(count, 1))),
            "background_score": stored(4 + np.random.default_rng(count + 2).normal(size=(count, 1))),
            "compressed": stored(5 + np.random.default_rng(count + 3).normal(size=(count, 1))),
        }

    train, val, test = rows(n, 1.0), rows(n // 3, 1.0), rows(n // 3, 2.0)
    head = {"weight": weight.astype(np.float32).astype(np.float64), "bias": bias.astype(np.float32).astype(np.float64)}
    train |= head | {f"val_{key}": column for key, column in val.items()}
    return train, val | head, test | head


def stored(values):
    """The numbers as they come back from float32 storage."""
    return values.astype(np.float32).astype(np.float64)


COLUMNS = {
    "PerturbedLogits": "perturbed",
    "PerturbedFeatures": "perturbed_features",
    "PooledMaps": "maps",
    "GramSums": "gram",
    "RankReducedLogits": "rank_reduced",
    "MemberLogits": "members",
    "DroppedLogits": "members",
    "SteppedNumerators": "numerators",
    "JointLogits": "joint",
    "TurnLosses": "turns",
    "TurnedViews": "turned",
    "CertifiedConfidence": "certified",
    "SteppedMaps": "maps",
    "NegativeSums": "negative_sums",
    "LocalConcepts": "local",
    "PairMatches": "pair_matches",
    "CompressedLength": "compressed",
    "MixedFeatures": "mixed",
    "PushedScores": "pushed",
    "NoisyScores": "noisy",
    "CorruptedScores": "corrupted",
}
"""Which rows of a world stand for what a probe would have found."""


def column_of(probe):
    """The rows that stand for a probe's; what a network returns stands there by its name."""
    if isinstance(probe, OwnScore):
        return "background_score" if "background" in probe.column else "own_score"
    return probe.name if isinstance(probe, Output) else COLUMNS[type(probe).__name__]


def activations(rows, probes=()):
    """The same rows as the package sees them."""
    return Activations(
        logits=rows["logits"].astype(np.float32),
        features=rows["features"].astype(np.float32),
        labels=rows["labels"],
        weight=rows["weight"],
        bias=rows["bias"],
        columns={probe.column: rows[column_of(probe)].astype(np.float32) for probe in probes},
    )
