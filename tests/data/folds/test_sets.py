"""From two image sets to folds: what is refused, what is dropped, what is noted."""

import numpy as np
import pytest

from oodscope.base.config import parse
from oodscope.base.errors import DataError, OodscopeError
from oodscope.data.folds.crossval import crossval_folds, crossval_hold_out
from oodscope.data.folds.dealing import hierarchical_choice
from oodscope.data.folds.hierarchical import hierarchical_folds, hierarchical_hold_out
from oodscope.data.folds.sets import FoldPlan, fold_sets
from oodscope.data.images.csvlist import open_csv
from oodscope.data.imageset import ImageSet
from oodscope.data.public.cards import load_card
from oodscope.data.public.selection import restrict
from tests.data.folds.test_crossval_folds import content
from tests.data.test_imagesets import picture


def images(name, labels, classes, first=0, **options):
    """Images that differ from all others by number, counted from ``first``."""
    numbers = np.arange(first, first + len(labels), dtype=np.uint32)
    pixels = numbers[:, None].view(np.uint8).reshape(-1, 2, 2)
    return ImageSet.from_arrays(name, pixels, labels, classes, **options)


def known(**options):
    return images("known", np.tile([0, 1, 2], 8), ["cat", "dog", "eel"], **options)


def outliers(**options):
    return images(
        "strange", np.repeat(np.arange(6), 3), [f"rune {letter}" for letter in "abcdef"], first=100, **options
    )


def with_copies(images, of, rows):
    """The set with the pixels of rows of another, or of its own, in the place of its last images."""
    pixels = np.stack(images.images(range(len(images))))
    pixels[-len(rows) :] = np.stack(of.images(rows))
    return ImageSet.from_arrays(images.name, pixels, images.labels, images.class_names)


class TestFlat:
    def test_are_the_folds_of_their_labels(self):
        id_set, ood_set = known(), outliers()
        plan = FoldPlan(folds=3, seed=4, val_share="1/4")
        folded = fold_sets(id_set, ood_set, plan)
        options = {"folds": 3, "seed": 4, "repetition": 6, "val_share": "1/4"}
        made = crossval_folds(id_set.labels, ood_set.labels, **options)
        assert [content(fold) for fold in folded.folds(6)] == [content(fold) for fold in made]
        hold_out = crossval_hold_out(id_set.labels, ood_set.labels, **options)
        assert content(folded.hold_out(6)) == content(hold_out)
        assert folded.notes == ()
        plain = fold_sets(id_set, ood_set, plan.model_copy(update={"stratified": False}))
        assert content(plain.folds(6)[0]) == content(
            crossval_folds(id_set.labels, ood_set.labels, **options, stratified=False)[0]
        )
        assert content(plain.hold_out(6)) == content(
            crossval_hold_out(id_set.labels, ood_set.labels, **options, stratified=False)
        )

    def test_class_numbers_are_those_of_the_set(self):
        """Also in a part of a set that has lost its first classes."""
        ood_set = outliers()
        part = ood_set.take(np.flatnonzero(ood_set.labels >= 3))
        for fold in fold_sets(known(), part, FoldPlan(folds=3)).folds():
            assert [part.class_names[number] for number in fold.ood_test_classes] == [
                f"rune {'abcdef'[label]}" for label in np.unique(part.labels[fold.ood_test])
            ]

    def test_five_folds_by_default(self):
        assert len(fold_sets(known(), outliers()).folds()) == 5

    def test_a_plan_is_a_strict_record(self):
        with pytest.raises(OodscopeError, match="unknown key 'fold'. Did you mean 'folds'"):
            parse(FoldPlan, {"fold": 3}, "job")
        with pytest.raises(OodscopeError, match="job: duplicates"):
            parse(FoldPlan, {"duplicates": "ignore"}, "job")


class TestDuplicates:
    def test_an_outlier_that_is_known_stops(self):
        ood_set = with_copies(outliers(), known(), [3, 5])
        with pytest.raises(
            DataError, match=r"2 in the OOD set 'strange' are ID images too.*strange/16\).*duplicates='drop'"
        ):
            fold_sets(known(), ood_set)

    def test_and_can_be_dropped(self):
        ood_set = with_copies(outliers(), known(), [3, 5])
        folded = fold_sets(known(), ood_set, FoldPlan(duplicates="drop"))
        assert folded.notes == (
            "2 of 18 images of 'strange' left out: they are ID images too, or stand under two OOD classes",
        )
        for fold in [*folded.folds(), folded.hold_out()]:
            assert sorted([*fold.ood_train, *fold.ood_test]) == list(range(16))
            assert sorted([*fold.id_train, *fold.id_val, *fold.id_test]) == list(range(24))

    def test_known_images_that_repeat(self):
        id_set = with_copies(known(), known(), [0, 3])  # rows 22 and 23 are copies
        with pytest.raises(DataError, match=r"2 in the ID set 'known' repeat an earlier one \(the first: known/22\)"):
            fold_sets(id_set, outliers())
        folded = fold_sets(id_set, outliers(), FoldPlan(duplicates="drop"))
        assert folded.notes == ("2 of 24 images of 'known' left out: they repeat an earlier one",)
        for fold in folded.folds():
            assert sorted([*fold.id_train, *fold.id_val, *fold.id_test]) == list(range(22))

    def test_rows_after_a_dropped_one_keep_their_numbers(self):
        whole = with_copies(known(), known(), [0])
        id_set = whole.take([0, 23, *range(1, 23)])
        folded = fold_sets(id_set, outliers(), FoldPlan(duplicates="drop"))
        for fold in folded.folds():
            assert sorted([*fold.id_train, *fold.id_val, *fold.id_test]) == [0, *range(2, 24)]
            assert np.bincount(id_set.labels[fold.id_test]).max() <= 2

    def test_so_do_outliers_after_a_dropped_one(self):
        ood_set = with_copies(outliers(), known(), [3]).take([17, *range(17)])
        folded = fold_sets(known(), ood_set, FoldPlan(duplicates="drop"))
        for fold in [*folded.folds(), folded.hold_out()]:
            assert sorted([*fold.ood_train, *fold.ood_test]) == list(range(1, 18))
            assert set(ood_set.labels[fold.ood_train]).isdisjoint(ood_set.labels[fold.ood_test])

    def test_an_outlier_of_two_classes_stops_and_copies_within_a_class_do_not(self):
        ood_set = outliers()
        with pytest.raises(DataError, match="1 in the OOD set 'strange'"):
            fold_sets(known(), with_copies(ood_set, ood_set, [0]))
        assert fold_sets(known(), with_copies(ood_set, ood_set, [15])).notes == ()

    def test_known_folds_stay_when_outliers_are_dropped(self):
        plan = FoldPlan(duplicates="drop")
        one = fold_sets(known(), outliers(), plan).folds()
        two = fold_sets(known(), with_copies(outliers(), known(), [1]), plan).folds()
        assert [content(fold)[:3] for fold in one] == [content(fold)[:3] for fold in two]

    def test_dropping_a_class_away_leaves_too_few(self):
        ood_set = with_copies(outliers(), known(), [0, 1, 2, 3, 4, 5])
        with pytest.raises(DataError, match="5 folds need 5 OOD classes, one to test in each; there are 4"):
            fold_sets(known(), ood_set, FoldPlan(duplicates="drop"))


class TestNames:
    @pytest.mark.parametrize("name", ["dog", "Dogs"])
    def test_a_class_on_both_sides_stops(self, name):
        ood_set = images("strange", np.arange(6), [*"uvwxy", name], first=100)
        with pytest.raises(DataError, match=f"the class '{name}' of the OOD set 'strange' is the class 'dog'"):
            fold_sets(known(), ood_set)

    def test_unless_no_image_has_it(self):
        ood_set = images("strange", np.arange(5), [*"uvwxy", "dog"], first=100)
        assert fold_sets(known(), ood_set).notes == ()

    def test_numbers_are_no_names(self):
        ood_set = images("strange", np.arange(5), [], first=100)
        (note,) = fold_sets(known(), ood_set).notes
        assert note.startswith("classes of 'strange' are numbers")

    def test_but_in_two_parts_of_one_set_they_are(self):
        whole = images("whole", np.repeat(np.arange(8), 3), [])
        parts = [whole.take(np.flatnonzero(keep)) for keep in (whole.labels < 3, whole.labels >= 3)]
        assert fold_sets(*parts).notes == ()
        with pytest.raises(DataError, match="the class '2' of the OOD set"):
            fold_sets(parts[0], whole.take(np.flatnonzero(whole.labels >= 2)))

    @pytest.mark.parametrize("side", [0, 1])
    def test_images_without_a_class_stop(self, side):
        sets = [known(), outliers()]
        labels = sets[side].labels.copy()
        labels[:2] = -1
        sets[side] = ImageSet(sets[side].name, sets[side].source, labels, sets[side].class_names)
        with pytest.raises(DataError, match=f"set '{sets[side].name}': 2 of .* images have no class"):
            fold_sets(*sets)

    def test_impossible_folds_are_found_at_once(self):
        with pytest.raises(DataError, match="7 folds need 7 OOD classes"):
            fold_sets(known(), outliers(), FoldPlan(folds=7))
        with pytest.raises(DataError, match="one class only"):
            fold_sets(known().take(np.arange(0, 24, 3)), outliers())


class TestHierarchies:
    @pytest.fixture
    def halves(self):
        """A miniature of CIFAR-100, two images per class, with two outlier classes from each superclass."""
        groups = load_card("cifar100").hierarchy["superclass"]
        names = sorted(name for members in groups.values() for name in members)
        whole = images("cifar", np.tile(np.arange(100), 2), names)
        whole.hierarchy.update(load_card("cifar100").levels(whole))
        strata = whole.hierarchy["superclass"][:100]
        choice = hierarchical_choice(strata, "2/5", seed=0)
        return [restrict(whole, [names[number] for number in numbers]) for numbers in (choice.id, choice.ood)]

    def test_follow_the_true_superclasses(self, halves):
        id_set, ood_set = halves
        folded = fold_sets(id_set, ood_set, FoldPlan(level="superclass", seed=1))
        made = hierarchical_folds(id_set.labels, ood_set.labels, ood_set.hierarchy["superclass"], seed=1, repetition=2)
        assert [content(fold) for fold in folded.folds(2)] == [content(fold) for fold in made.folds]
        assert (folded.hierarchical(2).coverage == made.coverage).all()
        assert folded.hierarchical(2).warnings == made.warnings
        assert (made.coverage.sum(axis=1) == 2).all()
        assert (made.coverage.sum(axis=0) == 8).all()
        held = hierarchical_hold_out(
            id_set.labels, ood_set.labels, ood_set.hierarchy["superclass"], seed=1, repetition=2
        )
        assert content(folded.hold_out(2)) == content(held)
        assert folded.notes == (
            "20 of 20 groups of 'superclass' have fewer OOD classes than the 5 folds: not every fold tests them",
        )

    def test_strict_refuses_what_misses_a_fold(self, halves):
        with pytest.raises(DataError, match="20 of 20 strata have fewer OOD classes than the 5 folds"):
            fold_sets(*halves, FoldPlan(level="superclass", strict=True))
        assert fold_sets(*halves, FoldPlan(level="superclass", strict=True, folds=2)).notes == ()

    def test_groups_on_one_side_are_noted(self, halves):
        id_set, ood_set = halves
        few = ood_set.take(np.flatnonzero(ood_set.hierarchy["superclass"] != "trees"))
        fewer = id_set.take(np.flatnonzero(id_set.hierarchy["superclass"] != "people"))
        _, no_ood, no_id = fold_sets(fewer, few, FoldPlan(level="superclass")).notes
        assert no_ood == "1 of 20 groups of 'superclass' have no OOD class: trees"
        assert no_id == "1 of 20 groups of 'superclass' have no ID class: people"

    def test_an_empty_stratum_shows_and_strict_refuses_it(self, halves):
        id_set, ood_set = halves
        few = ood_set.take(np.flatnonzero(ood_set.hierarchy["superclass"] != "trees"))
        made = fold_sets(id_set, few, FoldPlan(level="superclass", folds=2)).hierarchical()
        assert made.coverage[made.strata.index("trees")].tolist() == [0, 0]
        assert made.warnings[0].endswith("tested in the folds in brackets: trees (0, 1)")
        with pytest.raises(DataError, match=r"1 of 20 strata have fewer OOD classes.*trees \(0, 1\)"):
            fold_sets(id_set, few, FoldPlan(level="superclass", folds=2, strict=True))

    def test_flat_folds_cover_no_strata(self):
        with pytest.raises(DataError, match="without a level"):
            fold_sets(known(), outliers()).hierarchical()

    def test_columns_of_a_table_with_a_deeper_level(self, tmp_path):
        lines = ["path,genus,class,breed"]
        for genus, classes in {"canis": ("dog", "wolf", "fox"), "felis": ("cat", "lynx", "lion")}.items():
            for species in classes:
                for number in range(8):
                    picture(tmp_path / f"{species}{number}.png")
                    lines.append(f"{species}{number}.png,{genus},{species},{'ab'[number % 2]}")
        (tmp_path / "list.csv").write_text("\n".join(lines))
        whole = open_csv("animals", tmp_path / "list.csv")
        id_set = restrict(whole, ["cat", "dog", "lynx", "wolf"])
        ood_set = restrict(whole, ["fox", "lion"])
        folded = fold_sets(id_set, ood_set, FoldPlan(folds=2, level="genus", deepest="breed"))
        for fold in folded.folds():
            pairs = zip(id_set.labels[fold.id_test], id_set.hierarchy["breed"][fold.id_test])
            assert sorted(pairs) == [(label, breed) for label in range(4) for breed in "aabb"]

    @pytest.mark.parametrize(
        ("plan", "message"),
        [
            ({"level": "superclas"}, "set 'cifar' has no level 'superclas' of classes. Did you mean 'superclass'"),
            ({"level": "superclass", "deepest": "breed"}, "no level 'breed' of classes. It has: superclass"),
            ({"deepest": "superclass"}, "deepest='superclass' needs a level"),
            ({"level": "superclass", "stratified": False}, "always stratified"),
        ],
    )
    def test_errors(self, halves, plan, message):
        with pytest.raises(DataError, match=message):
            fold_sets(*halves, FoldPlan(**plan))


class TestSuperclasses:
    def test_a_strange_class_is_named(self):
        made = images("mine", [0, 1], ["apple", "beavr"])
        with pytest.raises(DataError, match="set 'mine': 'beavr' is not a class of CIFAR-100. Did you mean 'beaver'"):
            load_card("cifar100").levels(made)
