"""Random fold problems for hypothesis, and the invariants counted one row at a time."""

from collections import Counter

import numpy as np
from hypothesis import strategies as st


@st.composite
def fold_problems(draw):
    """ID labels, OOD classes, K: every ID class has two images, there are K OOD classes; numbers or text, any order."""
    folds = draw(st.integers(2, 7))
    id_sizes = draw(st.lists(st.integers(2, 17), min_size=2, max_size=8).filter(lambda sizes: sum(sizes) >= folds))
    ood_sizes = draw(st.lists(st.integers(1, 9), min_size=folds, max_size=20))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    id_labels = rng.permutation(np.repeat(rng.permutation(100)[: len(id_sizes)], id_sizes))
    ood_classes = rng.permutation(np.repeat(rng.permutation(100)[: len(ood_sizes)], ood_sizes))
    if draw(st.booleans()):
        ood_classes = np.array([f"c{number}" for number in ood_classes])
    return id_labels, ood_classes, folds


@st.composite
def hierarchies(draw):
    """One stratum per class, at least one class per stratum, named in no order."""
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=9))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    names = rng.permutation(50)[: len(sizes)]
    return rng.permutation(np.repeat([f"s{number}" for number in names], sizes))


shares = st.one_of(
    st.integers(0, 100).map(lambda percent: percent / 100),
    st.fractions(0, 1, max_denominator=40),
    st.fractions(0, 1, max_denominator=40).map(float),
    st.integers(0, 1000).map(lambda thousandth: f"{thousandth / 1000:.3f}"),
)


def spread(numbers):
    """The largest difference of two counts."""
    return max(numbers) - min(numbers)


def per_fold(folds, field, labels):
    """Of each fold, how many rows of each label its field holds."""
    return [Counter(labels[row] for row in getattr(fold, field)) for fold in folds]
