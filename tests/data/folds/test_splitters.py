"""The splitters beside scikit-learn's own, and inside scikit-learn."""

from collections import Counter

import numpy as np
import pytest
import sklearn
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, check_cv, cross_val_score

from oodscope.base.errors import DataError
from oodscope.data.folds.crossval import crossval_folds
from oodscope.data.folds.hierarchical import hierarchical_folds
from oodscope.data.folds.splitters import CrossvalKFold, HierarchicalKFold
from tests.data.folds.problems import fold_problems
from tests.examples import examples

few = examples(40)


def mixed(id_labels, ood_classes, seed=0):
    """Known rows and outliers in one table, in random order, with classes of their own."""
    y = np.array([f"id{label}" for label in id_labels] + [f"ood{cls}" for cls in ood_classes])
    is_ood = np.repeat([False, True], [len(id_labels), len(ood_classes)])
    order = np.random.default_rng(seed).permutation(len(y))
    return y[order], is_ood[order]


def counts(splits, values, rows=None):
    """How many rows of each value every test holds."""
    return [Counter(values[row] for row in test if rows is None or rows[row]) for _, test in splits]


@pytest.mark.filterwarnings("ignore:The least populated class")
class TestBesideScikitLearn:
    @few
    @given(fold_problems(), st.booleans())
    def test_known_rows_are_counted_as_by_stratified_k_fold(self, problem, shuffle):
        id_labels, ood_classes, folds = problem
        assume(max(Counter(id_labels).values()) >= folds)  # scikit-learn refuses fewer
        y, is_ood = mixed(id_labels, ood_classes)
        seed = 3 if shuffle else None
        ours = counts(CrossvalKFold(folds, shuffle=shuffle, random_state=seed).split(None, y, is_ood), y, ~is_ood)
        known = y[~is_ood]
        theirs = counts(StratifiedKFold(folds, shuffle=shuffle, random_state=seed).split(known, known), known)
        for label in set(known):
            assert sorted(held[label] for held in ours) == sorted(held[label] for held in theirs)
        assert sorted(held.total() for held in ours) == sorted(held.total() for held in theirs)

    @few
    @given(fold_problems())
    def test_and_fold_by_fold_where_the_order_is_fixed(self, problem):
        id_labels, ood_classes, folds = problem
        assume(max(Counter(id_labels).values()) >= folds)
        known = np.sort(id_labels)  # scikit-learn deals classes in the order in which they come
        y, is_ood = (
            np.concatenate([known, np.arange(len(ood_classes)) + 1000]),
            np.arange(len(known) + len(ood_classes)),
        )
        ours = counts(CrossvalKFold(folds, shuffle=False).split(None, y, is_ood >= len(known)), y, y < 1000)
        assert ours == counts(StratifiedKFold(folds).split(known, known), known)

    @few
    @given(st.integers(2, 6), st.integers(2, 20), st.integers(1, 5))
    def test_outliers_are_grouped_as_by_group_k_fold(self, folds, classes, size):
        """Of equal classes GroupKFold too gives every fold the same number, up to one."""
        assume(classes >= folds)
        y, is_ood = mixed(np.repeat([0, 1], folds), np.repeat(np.arange(classes), size))
        ours = counts(CrossvalKFold(folds, random_state=0).split(None, y, is_ood), y, is_ood)
        outliers = y[is_ood]
        theirs = counts(GroupKFold(folds).split(outliers, groups=outliers), outliers)
        assert sorted(len(held) for held in ours) == sorted(len(held) for held in theirs)
        assert Counter(cls for held in ours for cls in held) == Counter(cls for held in theirs for cls in held)

    @few
    @given(st.integers(2, 5), st.lists(st.integers(0, 6), min_size=1, max_size=5), st.integers(1, 3))
    def test_strata_are_grouped_as_by_group_k_fold_in_each(self, folds, more, size):
        """GroupKFold inside a stratum is defined where the stratum has as many classes as there are folds."""
        strata = np.repeat(np.arange(len(more)), np.array(more) + folds)
        classes = np.repeat(np.arange(len(strata)), size)
        y = np.concatenate([np.repeat([100, 101], folds), classes])
        groups = np.concatenate([np.zeros(2 * folds, int), strata[classes]])
        splits = [*HierarchicalKFold(np.arange(len(strata)), folds, random_state=1).split(None, y, groups)]
        for stratum in range(len(more)):
            ours = counts(splits, y, (y < 100) & (groups == stratum))
            own = classes[strata[classes] == stratum]
            theirs = counts(GroupKFold(folds).split(own, groups=own), own)
            assert sorted(len(held) for held in ours) == sorted(len(held) for held in theirs)


def auroc(classifier, X, y):
    """The probability that a known row is more confident than an outlier: a class the classifier was not shown."""
    return roc_auc_score(~np.isin(y, classifier.classes_), -classifier.predict_proba(X).max(axis=1))


class TestInsideScikitLearn:
    @pytest.fixture(scope="class")
    def table(self):
        rng = np.random.default_rng(0)
        y = np.concatenate([np.repeat([0, 1, 2], 30), np.repeat(np.arange(10, 16), 8)])
        centres = np.where(np.arange(16)[:, None] < 3, np.eye(16, 3) * 6, rng.normal(size=(16, 3)))
        order = rng.permutation(len(y))
        return (centres[y] + rng.normal(size=(len(y), 3)))[order], y[order], (y >= 10)[order]

    @pytest.mark.parametrize("kind", ["crossval", "hierarchical"])
    def test_cross_val_score(self, table, kind):
        X, y, is_ood = table
        if kind == "crossval":
            cv, groups = CrossvalKFold(3, random_state=5), is_ood
        else:
            cv, groups = HierarchicalKFold(np.arange(10, 16), 3, random_state=5), y % 2
        assert check_cv(cv) is cv
        scores = cross_val_score(LogisticRegression(), X, y, groups=groups, cv=cv, scoring=auroc)
        by_hand = [
            auroc(LogisticRegression().fit(X[train], y[train]), X[test], y[test])
            for train, test in cv.split(X, y, groups)
        ]
        assert scores.tolist() == by_hand
        assert scores.min() > 0.6
        assert cv.get_n_splits(X, y, groups) == 3

    def test_grid_search_and_metadata_routing(self, table):
        X, y, is_ood = table
        search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=CrossvalKFold(3, random_state=0), scoring=auroc)
        direct = search.fit(X, y, groups=is_ood).cv_results_["mean_test_score"]
        with sklearn.config_context(enable_metadata_routing=True):
            routed = clone(search).fit(X, y, groups=is_ood).cv_results_["mean_test_score"]
        assert direct.tolist() == routed.tolist()

    def test_repr(self):
        assert (
            " ".join(repr(CrossvalKFold(3)).split())
            == "CrossvalKFold(n_splits=3, random_state=None, shuffle=True, with_outliers=False)"
        )
        assert repr(HierarchicalKFold([1], 3)).startswith("HierarchicalKFold(n_splits=3, ood_classes=[1]")


class TestIndices:
    @few
    @given(fold_problems(), st.booleans(), st.integers(0, 20))
    def test_are_those_of_the_crossval_folds(self, problem, with_outliers, seed):
        id_labels, ood_classes, folds = problem
        y, is_ood = mixed(id_labels, ood_classes)
        known, outliers = np.flatnonzero(~is_ood), np.flatnonzero(is_ood)
        splits = CrossvalKFold(folds, random_state=seed, with_outliers=with_outliers).split(None, y, is_ood)
        made = crossval_folds(y[known], y[outliers], folds=folds, seed=seed, val_share=0)
        for (train, test), fold in zip(splits, made, strict=True):
            assert test.tolist() == sorted([*known[fold.id_test], *outliers[fold.ood_test]])
            assert train.tolist() == sorted(
                [*known[fold.id_train], *(outliers[fold.ood_train] if with_outliers else [])]
            )

    def test_are_those_of_the_hierarchical_folds(self):
        rng = np.random.default_rng(0)
        y = rng.permutation(np.repeat(np.arange(12), 6))
        strata, deepest = y // 3, np.argsort(np.argsort(y, kind="stable")) % 2
        is_ood = y % 3 == 0
        made = hierarchical_folds(
            y[~is_ood], y[is_ood], strata[is_ood], id_deepest=deepest[~is_ood], folds=4, seed=2, val_share=0
        )
        cv = HierarchicalKFold([0, 3, 6, 9], 4, random_state=2, with_outliers=True)
        with pytest.warns(UserWarning, match="4 of 4 strata have fewer OOD classes than the 4 folds"):
            splits = [*cv.split(None, y, np.stack([strata, deepest], axis=1))]
        known, outliers = np.flatnonzero(~is_ood), np.flatnonzero(is_ood)
        for (train, test), fold in zip(splits, made.folds, strict=True):
            assert test.tolist() == sorted([*known[fold.id_test], *outliers[fold.ood_test]])
            assert train.tolist() == sorted([*known[fold.id_train], *outliers[fold.ood_train]])

    def test_without_a_seed_every_split_is_new(self):
        y, is_ood = mixed(np.repeat([0, 1], 30), np.repeat(np.arange(5), 4))
        for cv, fresh in (
            (CrossvalKFold(), True),
            (CrossvalKFold(random_state=1), False),
            (CrossvalKFold(shuffle=False), False),
        ):
            one, two = ([test.tolist() for _, test in cv.split(None, y, is_ood)] for _ in range(2))
            assert (one != two) == fresh

    def test_numbers_serve_as_marks(self):
        y, is_ood = mixed(np.repeat([0, 1], 30), np.repeat(np.arange(5), 4))
        one, two = (
            [test.tolist() for _, test in CrossvalKFold(random_state=0).split(None, y, marks)]
            for marks in (is_ood, is_ood.astype(float).tolist())
        )
        assert one == two

    @pytest.mark.parametrize(
        ("cv", "y", "groups", "message"),
        [
            (CrossvalKFold(2), list("aabbcd"), None, "needs groups: True for each row that is an outlier"),
            (CrossvalKFold(2), list("aabbcd"), [0, 0, 1], "groups has 3 rows where y has 6"),
            (CrossvalKFold(2), list("aabbcd"), list("iiiioo"), "it holds other values"),
            (CrossvalKFold(2), list("aabbcd"), [0, 0, 0, 0, 1, 2], "it holds other values"),
            (CrossvalKFold(2), list("aabbcb"), [0, 0, 0, 0, 1, 1], "class 'b' has known rows and outliers"),
            (CrossvalKFold(3), list("aabbcd"), [0, 0, 0, 0, 1, 1], "3 folds need 3 OOD classes"),
            (CrossvalKFold(2), [[1]], [0], "y must be one column"),
            (HierarchicalKFold(list("cd"), 2), list("aabbcd"), None, "needs groups: the stratum of each row"),
            (HierarchicalKFold(list("ce"), 2), list("aabbcd"), list("ststst"), "ood_classes names 'e', which is"),
            (HierarchicalKFold(list("cd"), 2), list("aabbcd"), list("sts"), "one or two columns of 6 rows"),
            (HierarchicalKFold(list("cd"), 2), list("aabbcd"), np.zeros((6, 3)), "not of shape"),
            (HierarchicalKFold(list("cd"), 2, strict=True), list("aabbcd"), list("ststst"), "2 of 2 strata have fewer"),
        ],
    )  # fmt: skip
    def test_errors(self, cv, y, groups, message):
        with pytest.raises(DataError, match=message):
            next(cv.split(None, y, groups))
