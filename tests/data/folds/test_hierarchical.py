"""The exact choice of outlier classes, and folds that keep the strata of a hierarchy."""

import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oodscope.base.errors import DataError
from oodscope.data.folds.dealing import exact_share, hierarchical_choice
from oodscope.data.folds.hierarchical import hierarchical_folds, hierarchical_hold_out
from tests.data.folds.problems import hierarchies, per_fold, shares, spread
from tests.data.folds.test_crossval_folds import check_fold, content
from tests.examples import examples

seeds = st.integers(0, 50)
few = examples(40)


@st.composite
def problems(draw):
    """ID labels with subclasses, OOD classes with strata, K."""
    strata = draw(hierarchies())
    folds = draw(st.integers(2, 6))
    assume(len(strata) >= folds)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    ood_classes = rng.permutation(np.repeat(np.arange(len(strata)), rng.integers(1, 5, len(strata))))
    sizes = draw(st.lists(st.integers(3, 12), min_size=2, max_size=5))
    id_labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    deepest = rng.integers(0, 3, len(id_labels))
    return id_labels, deepest, ood_classes, strata[ood_classes], folds


class TestShares:
    @pytest.mark.parametrize(
        ("share", "exact"),
        [
            (0.29, Fraction(29, 100)), ("0.29", Fraction(29, 100)), (1 / 3, Fraction(1, 3)), ("1/3", Fraction(1, 3)),
            (0.1 + 0.2, Fraction(3, 10)), (0, Fraction(0)), (1, Fraction(1)), (Fraction(2, 7), Fraction(2, 7)),
            (0.000001, Fraction(1, 1_000_000)), (np.float64(0.2), Fraction(1, 5)),
        ],
    )  # fmt: skip
    def test_are_what_a_person_means(self, share, exact):
        assert exact_share(share) == exact

    @pytest.mark.parametrize("share", ["x", -0.1, 1.01, float("nan"), float("inf")])
    def test_or_are_refused(self, share):
        with pytest.raises(DataError, match="a share"):
            exact_share(share)


class TestChoice:
    @few
    @given(hierarchies(), shares, seeds, st.booleans())
    def test_takes_the_floor_of_every_stratum(self, strata, share, seed, min_one):
        exact = Fraction(str(share)).limit_denominator(1_000_000)
        sizes = Counter(strata)
        wanted = {stratum: math.floor(exact * size) for stratum, size in sizes.items()}
        if min_one:
            wanted = {stratum: max(count, 1) for stratum, count in wanted.items()}
        if any(wanted[stratum] == sizes[stratum] for stratum in sizes):
            with pytest.raises(DataError, match="leave no known class"):
                hierarchical_choice(strata, share, seed, min_one=min_one)
        elif not any(wanted.values()):
            with pytest.raises(DataError, match="no outlier is left"):
                hierarchical_choice(strata, share, seed, min_one=min_one)
        else:
            choice = hierarchical_choice(strata, share, seed, min_one=min_one)
            assert {**dict.fromkeys(sizes, 0), **Counter(strata[choice.ood])} == wanted
            assert sorted([*choice.id, *choice.ood]) == list(range(len(strata)))
            assert (np.diff(choice.ood) > 0).all()
            bare = {stratum for stratum, count in wanted.items() if count == 0}
            assert len(choice.warnings) == (len(bare) > 0)
            for warning in choice.warnings:
                assert f"{len(bare)} of {len(sizes)} strata" in warning
                assert all(f"{stratum} ({sizes[stratum]})" in warning for stratum in bare)

    def test_floating_point_does_not_lose_a_class(self):
        assert math.floor(0.29 * 100) == 28
        assert len(hierarchical_choice(["all"] * 100, 0.29, 0).ood) == 29
        assert len(hierarchical_choice(["all"] * 3, 1 / 3, 0).ood) == 1

    def test_every_class_is_as_likely(self):
        strata = np.repeat(["a", "b"], [4, 2])
        drawn = np.bincount(
            np.concatenate([hierarchical_choice(strata, "0.5", seed).ood for seed in range(400)]), minlength=6
        )
        assert abs(drawn / 400 - 0.5).max() < 0.1  # four standard errors

    def test_a_class_without_a_stratum_is_named(self):
        with pytest.raises(DataError, match="strata of the classes: 1 of 3 rows have none, the first is row 1"):
            hierarchical_choice(["a", "", "b"], 0.5, 0)


class TestFolds:
    @few
    @given(problems(), seeds)
    def test_nothing_leaks_or_is_lost(self, problem, seed):
        id_labels, deepest, ood_classes, strata, count = problem
        made = hierarchical_folds(
            id_labels, ood_classes, strata, id_deepest=deepest, folds=count, seed=seed, repetition=1
        )
        for fold in made.folds:
            check_fold(fold, id_labels, ood_classes)
        assert sorted(row for fold in made.folds for row in fold.id_test) == list(range(len(id_labels)))
        assert sorted(row for fold in made.folds for row in fold.ood_test) == list(range(len(ood_classes)))

    @few
    @given(problems(), seeds)
    def test_known_rows_are_even_at_both_levels(self, problem, seed):
        id_labels, deepest, ood_classes, strata, count = problem
        made = hierarchical_folds(id_labels, ood_classes, strata, id_deepest=deepest, folds=count, seed=seed)
        for labels in (id_labels, [(one, two) for one, two in zip(id_labels, deepest)]):
            held = per_fold(made.folds, "id_test", labels)
            assert all(spread([fold[label] for fold in held]) <= 1 for label in set(labels))
        assert spread([len(fold.id_test) for fold in made.folds]) <= 1

    @few
    @given(problems(), seeds)
    def test_strata_reach_all_the_folds_they_can(self, problem, seed):
        id_labels, _, ood_classes, strata, count = problem
        made = hierarchical_folds(id_labels, ood_classes, strata, folds=count, seed=seed)
        stratum_of = dict(zip(ood_classes.tolist(), strata.tolist()))
        tested = [{int(ood_classes[row]) for row in fold.ood_test} for fold in made.folds]
        seen = defaultdict(list)
        for stratum in made.strata:
            seen[stratum] = [sum(stratum_of[cls] == stratum for cls in classes) for classes in tested]
            size = sum(group == stratum for group in stratum_of.values())
            assert sum(count > 0 for count in seen[stratum]) == min(size, count)
            assert spread(seen[stratum]) <= 1
        assert made.coverage.tolist() == [seen[stratum] for stratum in made.strata]
        assert list(made.strata) == sorted(set(strata))
        assert spread([len(classes) for classes in tested]) <= 1

    @few
    @given(problems(), seeds)
    def test_what_is_missed_is_said(self, problem, seed):
        id_labels, _, ood_classes, strata, count = problem
        made = hierarchical_folds(id_labels, ood_classes, strata, folds=count, seed=seed)
        short = [row for row in range(len(made.strata)) if 0 in made.coverage[row]]
        if not short:
            assert made.warnings == ()
            hierarchical_folds(id_labels, ood_classes, strata, folds=count, seed=seed, strict=True)
        else:
            (warning,) = made.warnings
            assert warning.startswith(
                f"{len(short)} of {len(made.strata)} strata have fewer OOD classes than the {count} folds"
            )
            for row in short:
                missed = ", ".join(str(fold) for fold in range(count) if made.coverage[row, fold] == 0)
                assert f"{made.strata[row]} ({missed})" in warning
            with pytest.raises(DataError) as error:
                hierarchical_folds(id_labels, ood_classes, strata, folds=count, seed=seed, strict=True)
            assert str(error.value) == warning

    def test_a_stratum_without_outliers_shows_and_changes_no_draw(self):
        labels, classes, strata = np.repeat([0, 1], 4), np.arange(6), list("bbbddd")
        plain = hierarchical_folds(labels, classes, strata, folds=2)
        made = hierarchical_folds(labels, classes, strata, id_strata=list("aaabbbcc"), folds=2)
        assert [content(fold) for fold in made.folds] == [content(fold) for fold in plain.folds]
        assert made.strata == ("a", "b", "c", "d")
        assert made.coverage[[1, 3]].tolist() == plain.coverage.tolist()
        assert made.coverage[[0, 2]].tolist() == [[0, 0], [0, 0]]
        with pytest.raises(DataError, match=r"2 of 4 strata .*: a \(0, 1\); c \(0, 1\)"):
            hierarchical_folds(labels, classes, strata, id_strata=list("aaabbbcc"), folds=2, strict=True)

    @pytest.mark.parametrize("classes", [1, 2, 3, 5, 7])
    def test_twenty_strata_and_five_folds(self, classes):
        """The paper's own case has one class per superclass: each superclass is tested in one fold of five."""
        strata = np.repeat(np.arange(20), classes)
        made = hierarchical_folds(np.repeat([0, 1], 10), np.arange(len(strata)), strata)
        assert (made.coverage.sum(axis=0) == 4 * classes).all()
        assert ((made.coverage > 0).sum(axis=1) == min(classes, 5)).all()

    def test_validation_takes_its_share_of_a_class_of_many_subclasses(self):
        labels, deepest = np.repeat([0, 1], 50), np.arange(100) // 2
        for fold in hierarchical_folds(labels, list("abab"), list("stst"), id_deepest=deepest, folds=2).folds:
            assert np.bincount(labels[fold.id_val]).tolist() == [5, 5]

    def test_any_two_strata_may_meet_in_a_fold(self):
        """Dealt in a fixed order, every fifth stratum would always be tested with the first."""
        strata = np.arange(20)
        met = np.zeros(20)
        for repetition in range(200):
            first = hierarchical_folds(np.repeat([0, 1], 5), strata, strata, repetition=repetition, val_share=0)
            met += first.coverage @ first.coverage[0]
        # 3 of the 19 others share its fold: 200 draws have a standard error of 0.026
        assert abs(met[1:] / 200 - 3 / 19).max() < 0.1

    def test_a_lone_subclass_is_said(self):
        made = hierarchical_folds([0, 0, 1, 1], list("abab"), list("ssss"), id_deepest=[0, 1, 0, 0], folds=2)
        assert made.warnings == (
            "2 of the deepest ID classes have one image: the fold that tests it has none of its kind in training",
        )

    def test_draws_are_reproducible_and_known_folds_independent(self):
        labels, classes = np.repeat(np.arange(3), 20), np.arange(12)
        folds = [
            [content(fold) for fold in hierarchical_folds(labels, classes, strata, repetition=repetition).folds]
            for strata, repetition in ((classes // 3, 0), (classes // 3, 0), (classes // 4, 0), (classes // 3, 1))
        ]
        assert folds[0] == folds[1]
        assert [fold[:3] for fold in folds[0]] == [fold[:3] for fold in folds[2]]
        assert folds[0] != folds[3]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"ood_strata": ["s", "t", "t", "t"]}, "OOD class 'a' lies in two strata, 's' and 't'"),
            ({"ood_strata": ["s", "t"]}, "OOD strata: 2 rows where the classes have 4"),
            ({"ood_strata": ["s", "t", "", "t"]}, "OOD strata: 1 of 4 rows have none, the first is row 2"),
            ({"id_strata": ["s", "", "t", "t"]}, "ID strata: 1 of 4 rows have none, the first is row 1"),
            ({"id_strata": ["s"]}, "ID strata: 1 rows where the classes have 4"),
            ({"id_deepest": [0]}, "deepest ID classes: 1 rows where the classes have 4"),
            ({"folds": 3}, "3 folds need 3 OOD classes"),
            ({"id_labels": [0, 0, 0, 0]}, "one class only"),
        ],
    )
    def test_errors(self, changes, message):
        good = {"id_labels": [0, 0, 1, 1], "ood_classes": list("abab"), "ood_strata": list("stst"), "folds": 2}
        for split in (hierarchical_folds, hierarchical_hold_out)[: 1 if "id_strata" in changes else 2]:
            with pytest.raises(DataError, match=message):
                split(**{**good, **changes})


class TestHoldOut:
    @few
    @given(problems(), seeds)
    def test_tests_a_kth_of_every_stratum(self, problem, seed):
        id_labels, deepest, ood_classes, strata, count = problem
        fold = hierarchical_hold_out(id_labels, ood_classes, strata, id_deepest=deepest, folds=count, seed=seed)
        check_fold(fold, id_labels, ood_classes)
        assert math.floor(len(id_labels) / count) <= len(fold.id_test) <= math.ceil(len(id_labels) / count)
        classes_of = {stratum: set(ood_classes[strata == stratum].tolist()) for stratum in set(strata)}
        tested = set(ood_classes[fold.ood_test].tolist())
        total = len(set(ood_classes.tolist())) / count
        assert math.floor(total) <= len(tested) <= math.ceil(total)
        for classes in classes_of.values():
            assert len(classes) // count <= len(classes & tested) <= math.ceil(len(classes) / count)

    def test_differs_from_the_folds(self):
        labels, classes = np.repeat(np.arange(3), 20), np.arange(12)
        fold = hierarchical_hold_out(labels, classes, classes // 3)
        assert content(fold) != content(hierarchical_folds(labels, classes, classes // 3).folds[0])
