"""On real images: the copies that CIFAR is known to hold, and copies and false alarms among photographs."""

from pathlib import Path

import numpy as np
import pytest

from oodscope.data.images.decoding import picture_digest
from oodscope.data.imageset import ImageSet
from oodscope.data.similarity.perceptual import resemblance, thumbnails
from oodscope.data.similarity.signatures import Signatures, read_signatures
from oodscope.runs.audit.pairs import Member, by_hash, exact_pairs, is_alike
from tests.pictures import COPIES
from tests.realdata.packs import pack

pytestmark = [pytest.mark.realdata, pytest.mark.slow]

ROLES = {"cifar100_train_25k": "id_train", "cifar100_test": "id_test", "cifar10_test": "near"}
KNOWN = {
    ("cifar100_train_25k", "cifar100_test"): 3,
    ("cifar100_test", "cifar10_test"): 1,
    ("cifar100_test", "cifar100_test"): 2,
}


def by_pixels_alone(images):
    digests = [picture_digest(image) for image in images.images(range(len(images)))]
    return Signatures(digests, np.zeros((len(digests), 1, 8), np.uint8), np.ones(len(digests), bool))


def counted(members):
    found = [(pair.first.set, pair.second.set) for pair in exact_pairs(members)]
    return {key: found.count(key) for key in KNOWN | {("cifar10_train", "cifar100_test"): 1} if key in found}


@pytest.fixture(scope="module")
def members(real_data):
    packs = {name: pack(real_data, name) for name in ROLES}
    return [Member(ROLES[name], images, by_pixels_alone(images), images.sample_ids()) for name, images in packs.items()]


def test_every_known_copy_is_found(members):
    assert counted(members) == KNOWN
    verdicts = {(pair.first.set, pair.second.set): pair.verdict for pair in exact_pairs(members)}
    assert verdicts["cifar100_train_25k", "cifar100_test"] == "contamination"
    assert verdicts["cifar100_test", "cifar10_test"] == "contamination"
    assert verdicts["cifar100_test", "cifar100_test"] == "note"


def test_one_training_image_of_cifar10_is_a_test_image_of_cifar100(real_data, members):
    homes = (real_data, Path(__file__).parent.parent.parent / "artifacts")
    home = next((each for each in homes if (each / "cifar10_train.npz").exists()), None)
    if home is None:
        pytest.skip("cifar10_train.npz is not there; the packs say how to build it")
    train = pack(real_data, "cifar10_train", home)
    first = Member("id_train", train, by_pixels_alone(train), train.sample_ids())
    assert counted([first, members[1]])["cifar10_train", "cifar100_test"] == 1


def test_copies_of_photographs_are_found_and_others_are_not(real_data):
    """Scenes of twenty kinds: 1,000 of them, 500,000 pairs; and seven kinds of copy of a hundred."""
    scenes = pack(real_data, "sun_scenes_32").take(np.arange(1000))
    pixels = scenes.images(range(1000))
    seen = read_signatures(scenes)
    small = [thumbnails(image) for image in pixels]
    alike = [(i, j) for i, j in by_hash(seen, seen) if is_alike(resemblance(small[i], small[j]))]
    assert len(alike) <= 5  # the set holds a few photographs twice
    for kind, treat in COPIES.items():
        copies = [treat(image) for image in pixels[:100]]
        found = by_hash(seen, read_signatures(ImageSet.from_arrays("copies", np.stack(copies))))
        hits = sum(is_alike(resemblance(small[i], thumbnails(copies[j]))) for i, j in found if i == j)
        assert hits >= 93, (kind, hits)
