"""Small worlds of activations on which detectors and their twins must agree."""

import numpy as np

from oodscope import Activations


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
        features = features.astype(np.float32).astype(np.float64)
        logits = (features @ weight.T + bias).astype(np.float32).astype(np.float64)
        perturbed = (logits * 1.01 + 0.1).astype(np.float32).astype(np.float64)
        return {"features": features, "logits": logits, "labels": labels, "perturbed": perturbed}

    train, val, test = rows(n, 1.0), rows(n // 3, 1.0), rows(n // 3, 2.0)
    head = {"weight": weight.astype(np.float32).astype(np.float64), "bias": bias.astype(np.float32).astype(np.float64)}
    train |= head | {"val_features": val["features"]}
    return train, val | head, test | head


def activations(rows, probes=()):
    """The same rows as the package sees them."""
    return Activations(
        logits=rows["logits"].astype(np.float32),
        features=rows["features"].astype(np.float32),
        labels=rows["labels"],
        weight=rows["weight"],
        bias=rows["bias"],
        columns={probe.column: rows["perturbed"].astype(np.float32) for probe in probes},
    )
