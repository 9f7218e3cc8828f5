"""Folds of a cross-validation: what must hold for every set, seed and number of folds, counted one row at a time."""

import math
import time
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oodscope.base.errors import DataError
from oodscope.data.folds.crossval import crossval_folds, crossval_hold_out
from oodscope.data.folds.fold import CrossvalFold, Draw
from tests.data.folds.problems import fold_problems, per_fold, spread
from tests.examples import examples

FIELDS = ("id_train", "id_val", "id_test", "ood_train", "ood_test")
seeds = st.integers(0, 50)
few = examples(40)


def content(fold):
    return [getattr(fold, name).tolist() for name in FIELDS]


def check_fold(fold, id_labels, ood_classes):
    """No row twice, none lost, no class of outliers on both sides; rows in increasing order."""
    known = [*fold.id_train, *fold.id_val, *fold.id_test]
    assert sorted(known) == list(range(len(id_labels)))
    assert sorted([*fold.ood_train, *fold.ood_test]) == list(range(len(ood_classes)))
    trained, tested = ({ood_classes[row] for row in rows} for rows in (fold.ood_train, fold.ood_test))
    assert trained.isdisjoint(tested)
    assert len(trained) == len(fold.ood_train_classes)
    assert len(tested) == len(fold.ood_test_classes) > 0
    for name in FIELDS:
        rows = getattr(fold, name)
        assert rows.dtype == np.int64
        assert (np.diff(rows) > 0).all()


class TestFolds:
    @few
    @given(fold_problems(), seeds, st.booleans())
    def test_every_fold_is_whole_and_does_not_leak(self, problem, seed, stratified):
        id_labels, ood_classes, count = problem
        folds = crossval_folds(id_labels, ood_classes, folds=count, seed=seed, repetition=3, stratified=stratified)
        assert [(fold.repetition, fold.number) for fold in folds] == [(3, number) for number in range(count)]
        for fold in folds:
            check_fold(fold, id_labels, ood_classes)

    @few
    @given(fold_problems(), seeds)
    def test_tests_are_a_partition_and_even(self, problem, seed):
        id_labels, ood_classes, count = problem
        folds = crossval_folds(id_labels, ood_classes, folds=count, seed=seed)
        assert sorted(row for fold in folds for row in fold.id_test) == list(range(len(id_labels)))
        assert sorted(row for fold in folds for row in fold.ood_test) == list(range(len(ood_classes)))
        for label in set(id_labels):
            assert spread([held[label] for held in per_fold(folds, "id_test", id_labels)]) <= 1
        assert spread([len(fold.id_test) for fold in folds]) <= 1
        assert spread([len(held) for held in per_fold(folds, "ood_test", ood_classes)]) <= 1

    @few
    @given(fold_problems(), seeds)
    def test_plain_folds_are_even_in_total(self, problem, seed):
        id_labels, ood_classes, count = problem
        folds = crossval_folds(id_labels, ood_classes, folds=count, seed=seed, stratified=False)
        assert sorted(row for fold in folds for row in fold.id_test) == list(range(len(id_labels)))
        assert spread([len(fold.id_test) for fold in folds]) <= 1

    def test_plain_folds_do_not_follow_classes(self):
        labels = np.repeat([0, 1], 500)
        counts = [
            held[0]
            for repetition in range(10)
            for held in per_fold(
                crossval_folds(labels, np.arange(5), repetition=repetition, stratified=False), "id_test", labels
            )
        ]
        assert spread(counts) > 5

    @few
    @given(fold_problems(), seeds, st.fractions(0, Fraction(9, 10), max_denominator=30))
    def test_validation_takes_its_exact_share_of_every_class(self, problem, seed, share):
        id_labels, ood_classes, count = problem
        for fold in crossval_folds(id_labels, ood_classes, folds=count, seed=seed, val_share=share):
            held = Counter(id_labels[row] for row in fold.id_val)
            left = Counter(id_labels[row] for row in fold.id_train)
            free = True
            for label in set(id_labels):
                size = held[label] + left[label]
                low, high = math.floor(share * size), math.ceil(share * size)
                if size > 1 and share > 0:
                    free &= low > 0 and high < size
                    low, high = min(max(low, 1), size - 1), max(min(high, size - 1), 1)
                elif size == 1:
                    free, low, high = share == 0, 0, 0
                assert low <= held[label] <= high
            if free:
                assert len(fold.id_val) == math.floor(share * (len(fold.id_val) + len(fold.id_train)))

    def test_a_fifth_of_balanced_classes_is_a_fifth(self):
        labels = np.repeat(np.arange(10), 100)
        for fold in crossval_folds(labels, np.arange(10), val_share=0.2):
            assert np.bincount(labels[fold.id_test]).tolist() == [20] * 10
            assert np.bincount(labels[fold.id_val]).tolist() == [16] * 10
            assert np.bincount(labels[fold.id_train]).tolist() == [64] * 10


class TestDraws:
    @few
    @given(fold_problems(), seeds)
    def test_a_draw_is_a_function_of_seed_and_repetition(self, problem, seed):
        id_labels, ood_classes, count = problem
        one, two = (
            [content(fold) for fold in crossval_folds(id_labels, ood_classes, folds=count, seed=seed, repetition=2)]
            for _ in range(2)
        )
        assert one == two

    def test_seeds_repetitions_and_hold_outs_draw_differently(self):
        labels, classes = np.repeat(np.arange(4), 30), np.repeat(np.arange(12), 3)
        draws = [{"seed": seed, "repetition": repetition} for seed in (0, 1, 2) for repetition in (0, 1)]
        drawn = [crossval_folds(labels, classes, **draw)[0] for draw in draws]
        drawn += [crossval_hold_out(labels, classes, **draw) for draw in draws]
        for name in FIELDS:
            assert len({tuple(getattr(fold, name)) for fold in drawn}) == len(drawn)

    def test_every_part_has_a_stream_of_its_own(self):
        streams = [
            Draw(seed, repetition, kind).stream(part, fold)
            for seed in (0, 1)
            for repetition in (0, 1)
            for kind in ("folds", "hold_out")
            for part in ("id", "ood", "val")
            for fold in (0, 1)
        ]
        assert len({int(stream.integers(2**63)) for stream in streams}) == len(streams)
        assert Draw(0, 0, shuffle=False).stream("id") is None

    def test_known_folds_do_not_depend_on_the_outliers(self):
        labels = np.repeat(np.arange(4), 11)
        one, two = crossval_folds(labels, np.arange(5)), crossval_folds(labels, np.repeat(np.arange(40), 3))
        for first, second in zip(one, two):
            assert content(first)[:3] == content(second)[:3]
        one, two = crossval_hold_out(labels, np.arange(5)), crossval_hold_out(labels, np.repeat(np.arange(40), 3))
        assert content(one)[:3] == content(two)[:3]

    def test_rows_of_a_fold_validate_differently(self):
        """Two folds share three fifths of the training rows; their validation must not be one choice repeated."""
        labels = np.repeat(np.arange(2), 500)
        one, two, *_ = crossval_folds(labels, np.arange(5))
        both = np.intersect1d(np.r_[one.id_train, one.id_val], np.r_[two.id_train, two.id_val])
        again = np.isin(both, one.id_val) & np.isin(both, two.id_val)
        assert 0.01 < again.mean() < 0.08  # a fifth of a fifth

    def test_every_row_and_class_is_as_likely_in_every_fold(self):
        """Also the only images of small classes: with classes dealt in a fixed order they would never move."""
        labels, classes = np.repeat([0, 1, 2, 3], [2, 3, 2, 9]), np.arange(7)
        tested, outliers = np.zeros((16, 3)), np.zeros((7, 3))
        for repetition in range(600):
            for fold in crossval_folds(labels, classes, folds=3, repetition=repetition, val_share=0):
                tested[fold.id_test, fold.number] += 1
                outliers[fold.ood_test, fold.number] += 1
        # 600 draws of 1/3: the standard error is 0.019
        assert abs(tested / 600 - 1 / 3).max() < 0.09
        assert abs(outliers / 600 - 1 / 3).max() < 0.09


class TestHoldOut:
    @few
    @given(fold_problems(), seeds)
    def test_tests_a_kth(self, problem, seed):
        id_labels, ood_classes, count = problem
        fold = crossval_hold_out(id_labels, ood_classes, folds=count, seed=seed, repetition=7)
        check_fold(fold, id_labels, ood_classes)
        assert (fold.repetition, fold.number) == (7, 0)
        assert math.floor(len(id_labels) / count) <= len(fold.id_test) <= math.ceil(len(id_labels) / count)
        classes = len(set(ood_classes)) / count
        assert math.floor(classes) <= len(fold.ood_test_classes) <= math.ceil(classes)
        for label, size in Counter(id_labels).items():
            held = sum(id_labels[row] == label for row in fold.id_test)
            assert math.floor(size / count) <= held <= math.ceil(size / count)

    def test_tests_every_image_and_class_alike(self):
        labels, classes = np.repeat([0, 1, 2], [2, 3, 2]), np.arange(4)
        held = [crossval_hold_out(labels, classes, folds=3, repetition=repetition) for repetition in range(900)]
        # 900 draws of 1/3: the standard error is 0.016
        for field, rows in (("id_test", 7), ("ood_test", 4)):
            counts = np.bincount(np.concatenate([getattr(fold, field) for fold in held]), minlength=rows)
            assert abs(counts / 900 - 1 / 3).max() < 0.06

    def test_may_be_plain(self):
        labels = np.repeat([0, 1], 500)
        counts = {
            int((labels[crossval_hold_out(labels, np.arange(5), repetition=r, stratified=False).id_test] == 0).sum())
            for r in range(10)
        }
        assert len(counts) > 3


class TestFoldObject:
    GOOD = {
        "id_train": [0, 1], "id_val": [2], "id_test": [3], "ood_train": [0, 1], "ood_test": [2, 3],
        "ood_classes": [5, 5, 0, 2],
    }  # fmt: skip

    def make(self, **changes):
        fields = {name: np.array(rows, dtype=np.int64) for name, rows in {**self.GOOD, **changes}.items()}
        return CrossvalFold(4, 1, **fields)

    def test_knows_its_classes(self):
        fold = self.make()
        assert fold.ood_train_classes.tolist() == [5]
        assert fold.ood_test_classes.tolist() == [0, 2]
        assert self.make(ood_train=[]).ood_train_classes.tolist() == []

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"id_test": [3, 0]}, "fold 1 of repetition 4: ID row 0 is used 2 times"),
            ({"id_val": [3]}, "ID row 3 is used 2 times"),
            ({"id_train": [0, 0, 1]}, "ID row 0 is used 2 times"),
            ({"ood_test": [1, 2]}, "OOD row 1 is used 2 times"),
            ({"ood_classes": [5, 0, 0, 2]}, "OOD class 0 is both trained on and tested"),
            ({"id_train": [-1, 1]}, "ID row -1 is not a row"),
            ({"id_train": []}, "id_train is empty"),
            ({"id_test": []}, "id_test is empty"),
            ({"ood_test": []}, "ood_test is empty"),
        ],
    )
    def test_cannot_leak(self, changes, message):
        with pytest.raises(DataError, match=message):
            self.make(**changes)


class TestErrors:
    LABELS, CLASSES = np.repeat([0, 1], 10), np.repeat(np.arange(5), 2)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"folds": 6}, "6 folds need 6 OOD classes, one to test in each; there are 5. Use folds=5 or fewer"),
            ({"folds": 1}, "at least 2 folds, not 1"),
            ({"ood_classes": ["x", "x", "x"]}, "the OOD set holds one class only, which cannot be divided"),
            ({"id_labels": ["cat"] * 9}, "the ID set holds one class only, cat; a classifier"),
            ({"id_labels": ["cat", "cat", "eel", "fox"]}, r"ID class 'eel' has one image \(2 such classes\)"),
            ({"id_labels": [0, 0, 1, 1]}, "5 folds of 4 ID images: use folds=4 or fewer"),
            ({"val_share": 1}, "val_share is 1"),
            ({"val_share": 1.5}, "between 0 and 1, not at 1.5"),
            ({"val_share": "a fifth"}, "not 'a fifth'"),
            ({"val_share": "1/0"}, "not '1/0'"),
            ({"seed": -1}, "must not be negative"),
            ({"repetition": -1}, "must not be negative"),
            ({"id_labels": []}, "ID classes: no rows"),
            ({"id_labels": [[0, 1]]}, "ID classes must be one column"),
            ({"ood_classes": ["a", "", "b"]}, "OOD classes: 1 of 3 rows have none, the first is row 1"),
            ({"ood_classes": [0.0, 1.0, np.nan]}, "OOD classes: 1 of 3 rows have none, the first is row 2"),
            ({"ood_classes": np.array(["a", None, np.nan], object)}, "OOD classes: 2 of 3 rows have none"),
            ({"ood_classes": np.array(["a", 1], object)}, "numbers and text in one column"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("split", [crossval_folds, crossval_hold_out])
    def test_say_what_is_wrong(self, split, changes, message):
        with pytest.raises(DataError, match=message):
            split(**{"id_labels": self.LABELS, "ood_classes": self.CLASSES, **changes})

    def test_plain_folds_take_lone_images(self):
        folds = crossval_folds(["cat", "eel", "fox", "fox"], list("abcde"), folds=2, stratified=False)
        assert sum(len(fold.id_test) for fold in folds) == 4


def test_a_whole_study_is_folded_in_seconds():
    """One repetition and three hold-outs of 60,000 images; a study has 50 and 100 of them."""
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 6000))
    classes = np.repeat(np.arange(100), 600)
    start = time.process_time()
    crossval_folds(labels, classes)
    for repetition in range(3):
        crossval_hold_out(labels, classes, repetition=repetition)
    assert time.process_time() - start < 2.0
