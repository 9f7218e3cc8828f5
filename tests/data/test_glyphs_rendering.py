"""Glyphs: the same pixels on every run, the right characters in the right roles, fonts that hold them."""

import hashlib
import os
import subprocess
import sys
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from PIL import Image

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.data.glyphs import characters as alphabet
from oodscope.data.glyphs.corruptions import CORRUPTIONS, corrupt
from oodscope.data.glyphs.drawing import TRAIN_FONTS, UNSEEN_FONTS, UNSEEN_STIX, glyph_mask, unseen_fonts
from oodscope.data.glyphs.split import SPLITS, GlyphSplit, render_split
from oodscope.data.glyphs.textures import KINDS

ROLES = {"id": alphabet.ID, "near": alphabet.NEAR, "ood_val": alphabet.OOD_VAL, "ood_train": alphabet.OOD_TRAIN}
ID_SPLITS = ("id_train", "id_val", "id_test", "unseen_fonts", "corrupted")
NOT_A_CHARACTER = "\uffff"


@pytest.fixture(scope="module")
def splits() -> dict[str, GlyphSplit]:
    return {name: render_split(name, per_class=15) for name in SPLITS}


def characters(role: str) -> list[tuple[str, str]]:
    return [(script, character) for script, letters in ROLES[role].items() for character in letters]


def digest(images: np.ndarray) -> str:
    return hashlib.sha256(images.tobytes()).hexdigest()


@pytest.mark.parametrize("name", SPLITS)
def test_shapes_types_and_labels(splits: dict[str, GlyphSplit], name: str) -> None:
    split = splits[name]
    classes = len(split.class_names)
    assert split.images.shape == (15 * classes, 32, 32, 3)
    assert split.images.dtype == np.uint8
    assert split.labels.dtype == np.int64
    assert np.array_equal(np.bincount(split.labels), np.full(classes, 15))
    assert len(set(split.class_names)) == classes
    assert split.images.reshape(len(split.images), -1).std(axis=1).min() > 0


@pytest.mark.parametrize("name", SPLITS)
def test_hierarchy_is_a_tree_over_the_classes(splits: dict[str, GlyphSplit], name: str) -> None:
    split = splits[name]
    assert list(split.hierarchy) == ["script", "character", "font"]
    assert all(len(column) == len(split.images) for column in split.hierarchy.values())
    assert np.array_equal(split.hierarchy["character"], np.array(split.class_names)[split.labels])
    parents = set(zip(split.hierarchy["character"], split.hierarchy["script"]))
    assert len(parents) == len(split.class_names)


def test_id_sets_share_their_classes(splits: dict[str, GlyphSplit]) -> None:
    names = {splits[name].class_names for name in ID_SPLITS}
    assert len(names) == 1
    assert len(names.pop()) == 20
    assert set(splits["near_letters"].hierarchy["script"]) == set(splits["id_train"].hierarchy["script"])


def test_other_sets_have_their_own_classes(splits: dict[str, GlyphSplit]) -> None:
    mine = set(splits["id_train"].class_names)
    for name in set(SPLITS) - set(ID_SPLITS):
        assert not mine & set(splits[name].class_names), name
    assert splits["textures"].class_names == tuple(KINDS)
    assert splits["digits"].class_names == tuple(f"digit {value}" for value in range(10))


def test_same_call_same_bytes_in_another_process(splits: dict[str, GlyphSplit]) -> None:
    code = (
        "import hashlib\n"
        "from oodscope.data.glyphs.split import SPLITS, render_split\n"
        "for name in SPLITS:\n"
        "    print(name, hashlib.sha256(render_split(name, per_class=15).images.tobytes()).hexdigest())\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4242"}
    output = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert dict(line.split() for line in output.splitlines()) == {n: digest(s.images) for n, s in splits.items()}


@pytest.mark.parametrize("name", SPLITS)
def test_a_smaller_set_is_the_start_of_a_larger_one(splits: dict[str, GlyphSplit], name: str) -> None:
    few, many = render_split(name, per_class=4), splits[name]
    rows = (np.arange(len(many.class_names))[:, None] * 15 + np.arange(4)).ravel()
    assert np.array_equal(few.images, many.images[rows])
    assert np.array_equal(few.hierarchy["font"], many.hierarchy["font"][rows])


def test_no_image_twice(splits: dict[str, GlyphSplit]) -> None:
    seen = [digest(image) for split in splits.values() for image in split.images]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("name", ["id_train", "photographs", "digits", "textures"])
def test_another_seed_draws_other_images(splits: dict[str, GlyphSplit], name: str) -> None:
    other = {digest(image) for image in render_split(name, per_class=15, seed=1).images}
    assert not other & {digest(image) for image in splits[name].images}


def test_digits_beyond_the_supply_are_not_copies() -> None:
    images = render_split("digits", per_class=200).images
    assert len({digest(image) for image in images}) == len(images)


def test_roles_share_no_character() -> None:
    for one, other in combinations(ROLES, 2):
        assert not set(characters(one)) & set(characters(other)), (one, other)


def test_names_are_unique_and_plain() -> None:
    names = [alphabet.class_name(character) for role in ROLES for _, character in characters(role)]
    assert len(set(names)) == len(names)
    assert all(name.isascii() for name in names)
    assert alphabet.class_name("Ω") == "greek capital omega"


@cache
def silhouette(character: str, font: str) -> np.ndarray:
    mask = glyph_mask(character, font)
    return np.asarray(mask.crop(mask.getbbox()).resize((24, 24)), float)


def likeness(one: str, other: str) -> float:
    """Shared ink over joint ink after both are cut to their ink, mean over the training fonts."""
    pairs = [(silhouette(one, font), silhouette(other, font)) for font in TRAIN_FONTS]
    return float(np.mean([np.minimum(a, b).sum() / np.maximum(a, b).sum() for a, b in pairs]))


def test_no_two_roles_hold_twins() -> None:
    assert likeness("K", "К") > 0.75, "Latin and Cyrillic K are twins: the measure must see it"
    for one, other in combinations(ROLES, 2):
        for _, left in characters(one):
            for _, right in characters(other):
                assert likeness(left, right) < 0.75, (left, right)


@pytest.mark.parametrize("role", ROLES)
def test_every_font_holds_every_character(role: str) -> None:
    for script, character in characters(role):
        fonts = TRAIN_FONTS + unseen_fonts(script) if role == "id" else TRAIN_FONTS
        for font in fonts:
            mask = glyph_mask(character, font)
            assert mask.getbbox() is not None, (character, font)
            assert mask.tobytes() != glyph_mask(NOT_A_CHARACTER, font).tobytes(), (character, font)


def test_masks_have_room_around_the_ink() -> None:
    for script, character in characters("id"):
        for font in TRAIN_FONTS + unseen_fonts(script):
            left, top, right, bottom = glyph_mask(character, font).getbbox() or (0, 0, 0, 0)
            assert min(left, top, 64 - right, 64 - bottom) > 0
            assert abs(left + right - 64) <= 1
            assert abs(top + bottom - 64) <= 1


def test_unseen_fonts_are_unseen(splits: dict[str, GlyphSplit]) -> None:
    trained = set(splits["id_train"].hierarchy["font"])
    assert trained == set(TRAIN_FONTS)
    assert set(splits["unseen_fonts"].hierarchy["font"]) == {*UNSEEN_FONTS, *UNSEEN_STIX}
    assert not trained & {*UNSEEN_FONTS, *UNSEEN_STIX}
    for name in ("near_letters", "corrupted", "ood_val", "ood_train"):
        assert set(splits[name].hierarchy["font"]) <= trained


def test_each_corruption_does_what_it_says() -> None:
    clean = np.repeat(render_split("id_test", per_class=1).images[:1], 12, axis=0)
    damaged = corrupt(clean, np.random.default_rng(0)).astype(float)

    def roughness(image: np.ndarray) -> float:
        return float(np.abs(np.diff(image, axis=0)).mean())

    before = clean[0].astype(float)
    for severity in range(3):
        after = dict(zip(CORRUPTIONS, damaged[4 * severity : 4 * severity + 4]))
        assert roughness(after["blur"]) < roughness(before) < roughness(after["noise"])
        assert after["contrast"].std() < 0.6 * before.std()
        assert len(np.unique(after["pixelate"].reshape(-1, 3), axis=0)) <= 22**2
    assert damaged[2].std() > damaged[6].std() > damaged[10].std(), "contrast falls with severity"


def test_photograph_patches_are_not_near_copies(splits: dict[str, GlyphSplit]) -> None:
    tiny = [np.asarray(Image.fromarray(image).resize((4, 4)), float).ravel() for image in splits["photographs"].images]
    gaps = [np.abs(a - b).mean() for a, b in combinations(tiny, 2)]
    assert np.median(gaps) > 20
    assert min(gaps) > 0


def test_progress_counts_every_image() -> None:
    told: list[int] = []
    split = render_split("ood_val", per_class=3, progress=told.append)
    assert sum(told) == len(split.images)


def test_bad_input_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="id_train"):
        render_split("id_trian", per_class=1)
    with pytest.raises(DataError, match="per_class is 0"):
        render_split("id_train", per_class=0)
    with pytest.raises(DataError, match="seed is -1"):
        render_split("id_train", per_class=1, seed=-1)
