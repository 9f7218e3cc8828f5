"""The packaged cards and manifests: what they state is what the papers and torchvision state."""

import numpy as np
import pytest
import yaml
from torchvision import datasets

from oodscope.base.errors import OodscopeError, UnknownNameError
from oodscope.data.loading import find_manifest
from oodscope.data.manifest import Manifest
from oodscope.data.packaged import HOME, class_list, class_words, names_in, row_list
from oodscope.data.public.cards import Card, load_card
from oodscope.data.public.needs import needs_of, read_benchmark

pytestmark = pytest.mark.usefixtures("true_home")

OPENOOD = {
    "cifar10": {"id_train": 50_000, "id_val": 1_000, "id_test": 9_000, "ood_val": 1_000, "cifar100": 9_000,
                "tin": 7_793, "mnist": 70_000, "svhn": 26_032, "texture": 5_640, "places365": 35_195,
                "ood_train": 29_850},
    "cifar100": {"id_train": 50_000, "id_val": 1_000, "id_test": 9_000, "ood_val": 972, "cifar10": 10_000,
                 "tin": 6_526, "mnist": 70_000, "svhn": 26_032, "texture": 5_640, "places365": 33_773,
                 "ood_train": 29_850},
    "imagenet200-fs": {"id_train": None, "id_val": 1_000, "id_test": 9_000, "ood_val": 1_763, "ssb_hard": 49_000,
                       "ninco": 5_879, "inaturalist": 10_000, "textures": 5_160, "openimage_o": 15_869,
                       "imagenet_v2": 2_000, "imagenet_c": 2_000, "imagenet_r": 30_000, "ood_train": None},
    "imagenet1k-fs": {"id_train": 1_281_167, "id_val": 5_000, "id_test": 45_000, "ood_val": 1_763, "ssb_hard": 49_000,
                      "ninco": 5_879, "inaturalist": 10_000, "textures": 5_160, "openimage_o": 15_869,
                      "imagenet_v2": 10_000, "imagenet_c": 10_000, "imagenet_r": 30_000},
}  # fmt: skip


@pytest.fixture
def true_home():
    """These tests read the packaged files themselves, not the miniature's."""
    from oodscope.data import packaged

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packaged, "HOME", HOME)
        yield


def counts(name):
    return {label: spec.count for _, label, spec in read_benchmark(name)[0].sets.by_role()}


@pytest.mark.parametrize("name", OPENOOD)
def test_counts_are_openoods(name):
    assert counts(name) == OPENOOD[name]


@pytest.mark.parametrize(("name", "base"), [("imagenet1k-fs-es", "imagenet1k-fs"), ("cifar10-fs", "cifar10")])
def test_the_covariate_shifted_sets_are_part_of_the_identity(name, base):
    added = counts(name).keys() - counts(base).keys()
    assert added == ({"imagenet_es"} if "es" in name else {"cifar10c"})
    assert read_benchmark("imagenet1k-fs-es")[0].version != read_benchmark("imagenet1k-fs")[0].version


def test_counts_of_the_other_papers():
    assert counts("evg-cifar10") == {
        "id_train": 45_000, "id_val": 5_000, "id_test": 10_000, "svhn": 26_032, "celeba": 19_962, "ood_train": 29_850,
        "ood_val": 1_000,
    }  # fmt: skip
    assert counts("human-centric").keys() >= {
        "textures", "inaturalist", "places", "sun", "id_test", "imagenet_c", "imagenet_v2", "imagenet_r",
    }  # fmt: skip
    pairs = [name for name in names_in("benchmarks") if name.startswith("dcv-")]
    assert len(pairs) == 11
    assert {counts(name)["id_test"] for name in pairs} == {60_000, 48_000}
    assert counts("dcv-cifar10-letters")["letters"] == 145_600


@pytest.mark.parametrize("name", names_in("benchmarks"))
def test_every_manifest_is_whole(name):
    """Each set names a split that exists, and cannot ask for more images than its splits hold."""
    manifest, wanted = read_benchmark(name)
    assert manifest.name == name
    for _, label, spec in manifest.sets.by_role():
        if spec.source != "dataset":
            continue
        held = [load_card(spec.dataset).split(split).count for split in spec.splits]
        if spec.rows is None and spec.classes is None and spec.random is None and None not in held:
            assert spec.count == sum(held), label
    assert wanted or name == "glyphs"


@pytest.mark.parametrize("name", names_in("datasets"))
def test_every_card_says_how_to_get_it(name):
    card = load_card(name)
    assert card.name == name
    assert card.fetch
    assert card.licence
    assert card.home.startswith("http")
    for fetch in card.fetch:
        assert set(fetch.splits) <= set(card.splits)
    for split in card.splits:
        assert any(not fetch.splits or split in fetch.splits for fetch in card.fetch)


def test_checksums_and_addresses_are_torchvisions():
    """Only those of torchvision's own source are packaged, so an upgrade that changes one fails here."""
    for cls in (datasets.CIFAR10, datasets.CIFAR100):
        card = load_card(cls.__name__.lower())
        theirs = {**dict(cls.train_list), **dict(cls.test_list), cls.meta["filename"]: cls.meta["md5"]}
        assert card.split("test").files == {f"{cls.base_folder}/{file}": md5 for file, md5 in theirs.items()}
        assert card.split("train").files == card.split("test").files
        assert (card.fetch[0].url, card.fetch[0].md5) == (cls.url, cls.tgz_md5)
    for cls, name in ((datasets.MNIST, "mnist"), (datasets.FashionMNIST, "fashion_mnist"), (datasets.KMNIST, "kmnist")):
        ours = {(fetch.url, fetch.md5) for fetch in load_card(name).fetch}
        assert ours == {(f"{cls.mirrors[0]}{file}", md5) for file, md5 in cls.resources}
    emnist = load_card("emnist").fetch[0]
    assert (emnist.url, emnist.md5) == (datasets.EMNIST.url, datasets.EMNIST.md5)
    svhn = load_card("svhn")
    for split in ("train", "test"):
        url, file, md5 = datasets.SVHN.split_list[split]
        assert svhn.split(split).files == {f"svhn/{file}": md5}
        assert [(fetch.url, fetch.md5) for fetch in svhn.fetch if fetch.splits == [split]] == [(url, md5)]
    assert (load_card("dtd").fetch[0].url, load_card("dtd").fetch[0].md5) == (datasets.DTD._URL, datasets.DTD._MD5)
    celeba = {file: md5 for _, md5, file in datasets.CelebA.file_list}
    assert {fetch.name: fetch.md5 for fetch in load_card("celeba").fetch}.items() <= celeba.items()


def test_only_what_needs_an_agreement_or_has_no_address_is_fetched_by_hand():
    by_hand = {name for name in names_in("datasets") for fetch in load_card(name).fetch if fetch.url is None}
    assert by_hand == {"celeba", "imagenet_1k", "imagenet_200", "midog", "oasis3", "phakir", "species"}


@pytest.mark.parametrize(
    ("name", "near", "far", "csid", "classes"),
    [("midog", 7, 2, 2, 3), ("phakir", 3, 2, 2, 7), ("oasis3", 3, 2, 2, 2)],
)
def test_the_benchmarks_of_openmibood_have_its_sets(name, near, far, csid, classes):
    manifest, _ = find_manifest(name)
    counts = tuple(len(getattr(manifest.sets, role)) for role in ("near", "far", "csid"))
    assert counts == (near, far, csid)
    assert manifest.sets.ood_val is not None and manifest.sets.id_val is not None
    card = load_card(name)
    assert "OpenMIBOOD" in card.title
    labelled = {split for split, layout in card.splits.items() if layout.classes}
    assert {card.splits[split].classes for split in labelled} == {classes}
    assert len(labelled) == 3 + csid, "outliers have no class among these"


def test_a_volume_is_called_one(tmp_path):
    from oodscope.data.images.decoding import UnreadableImageError, decode

    (tmp_path / "brain.nii.gz").write_bytes(b"\x1f\x8b" + bytes(40))
    with pytest.raises(UnreadableImageError, match="a volume, not a picture; run your network over it"):
        decode(tmp_path / "brain.nii.gz", "brain.nii.gz")
    with pytest.raises(UnreadableImageError, match="no such file"):
        decode(tmp_path / "none.nii.gz", "none.nii.gz")


def test_a_file_has_a_checksum_or_is_called_unverified():
    for name in names_in("datasets"):
        for fetch in load_card(name).fetch:
            assert fetch.trust == (f"MD5 {fetch.md5}" if fetch.md5 else "unverified: no checksum is published")
    assert load_card("mnist").has_checksums("test")
    assert load_card("ninco").has_checksums("all")
    assert not load_card("ninco").has_checksums("test")
    assert not load_card("sun_mos").has_checksums("all")


def test_superclasses_hold_every_class_of_cifar100_once():
    groups = load_card("cifar100").hierarchy["superclass"]
    members = [cls for group in groups.values() for cls in group]
    assert len(groups) == 20
    assert {len(group) for group in groups.values()} == {5}
    assert len(set(members)) == 100
    assert "maple_tree" in groups["trees"]
    assert "pickup_truck" in groups["vehicles_1"]


class TestPackagedRows:
    def test_sizes_and_disjointness(self):
        sizes = {"cifar10_val": 1_000, "cifar10_test": 9_000, "cifar100_val": 1_000, "cifar100_test": 9_000,
                 "cifar10_tin_val": 1_000, "cifar10_tin_test": 7_793, "cifar100_tin_val": 972,
                 "cifar100_tin_test": 6_526}  # fmt: skip
        members = {name: row_list(name).member for name in sizes}
        assert {name: int(member.sum()) for name, member in members.items()} == sizes
        assert all(len(member) == 10_000 for member in members.values())
        for dataset in ("cifar10", "cifar100", "cifar10_tin", "cifar100_tin"):
            assert not (members[f"{dataset}_val"] & members[f"{dataset}_test"]).any()

    def test_numbers_within_classes_are_those_of_the_published_lists(self):
        """A few lines of OpenOOD's val_cifar10.txt and val_cifar100.txt: file numbers count from 1 within the class."""
        trucks = np.flatnonzero(row_list("cifar10_val").member[9_000:]) + 1
        assert {978, 817, 989, 538, 238, 945, 7, 11, 26, 28} <= set(trucks.tolist())
        assert len(trucks) == 100
        worms = np.flatnonzero(row_list("cifar100_val").member[9_900:]) + 1
        assert worms.tolist() == [5, 13, 20, 25, 26, 43, 60, 68, 93, 99]
        tanks = np.flatnonzero(row_list("cifar100_val").member[8_500:8_600]) + 1
        assert tanks.tolist() == [3, 9, 28, 54, 60, 77, 83, 93, 94, 100]

    def test_class_after_class_becomes_official_order(self):
        from oodscope.data.packaged import RowList

        labels = np.array([2, 0, 1, 0, 2, 1, 0, 2])
        # the second image of class 0, the first of class 1, the third of class 2
        rows = RowList(np.array([0, 1, 0, 1, 0, 0, 0, 1], bool), by_class=True)
        assert rows.positions(labels).tolist() == [2, 3, 7]
        assert RowList(rows.member, by_class=False).positions(labels).tolist() == [1, 3, 7]

    def test_unknown(self):
        with pytest.raises(UnknownNameError, match="Did you mean 'cifar10_val'"):
            row_list("cifar10_vall")


def test_class_lists():
    assert len(class_list("imagenet_1k")) == len(set(class_list("imagenet_1k"))) == 1000
    assert class_list("imagenet_1k") == sorted(class_list("imagenet_1k"))
    assert len(set(class_list("imagenet_200"))) == 200
    assert set(class_list("imagenet_200")) < set(class_list("imagenet_1k"))


def test_the_classes_of_imagenet_have_words_and_every_class_its_own():
    words = class_words("imagenet_1k")
    assert words[:2] == ("tench", "goldfish")
    assert len({word.lower() for word in words}) == 1000
    assert not any(word.isdecimal() for word in words)
    by_id = dict(zip(class_list("imagenet_1k"), words))
    assert class_words("imagenet_200") == tuple(by_id[each] for each in class_list("imagenet_200"))


def test_mistakes_are_one_line(tmp_path):
    from oodscope.base.config import parse

    with pytest.raises(UnknownNameError, match="unknown benchmark or dataset 'cifra10'. Did you mean 'cifar10'"):
        needs_of("cifra10")
    content = yaml.safe_load((HOME / "datasets" / "svhn.yaml").read_text())
    with pytest.raises(OodscopeError, match="svhn.yaml: unknown key 'license'. Did you mean 'licence'"):
        parse(Card, {**content, "license": "x"}, "svhn.yaml")
    content["fetch"] = [{"md5": "0" * 32}]
    with pytest.raises(OodscopeError, match="needs a url, or says under ask"):
        parse(Card, content, "svhn.yaml")
    content["fetch"] = [{"url": "http://example.org/x.zip"}]
    with pytest.raises(OodscopeError, match="an address without encryption needs an md5"):
        parse(Card, content, "svhn.yaml")
    manifest = yaml.safe_load((HOME / "benchmarks" / "mnist.yaml").read_text())
    manifest["sets"]["id_test"]["spilt"] = "test"
    with pytest.raises(OodscopeError, match="unknown key .*spilt'. Did you mean 'split'"):
        parse(Manifest, manifest, "mnist.yaml")
    with pytest.raises(OodscopeError, match="dataset 'svhn' has no split 'tset'. Did you mean 'test'"):
        load_card("svhn").split("tset")
