"""From nothing to ready over HTTP, with the true kinds of archives."""

import copy
import hashlib
import shutil

import pytest
import yaml

from oodscope.data.public.cards import load_card
from oodscope.data.public.check import check_split
from oodscope.data.public.needs import dataset_needs, needs_of, overall, states
from oodscope.data.public.prepare import Wanted, prepare
from oodscope.data.public.state import State, list_files, state_of
from tests.data.public.miniature import md5
from tests.data.public.server import serve

DOWNLOADABLE = [
    "cifar10", "cifar100", "mnist", "fashion_mnist", "kmnist", "emnist", "svhn", "dtd", "tiny_imagenet", "sun_mos",
    "places_mos", "imagenet_a", "imagenet_o",
]  # fmt: skip


@pytest.fixture
def offered(pristine):
    """A server that offers what the cards ask for; the cards of this test point at it."""
    changed = [*DOWNLOADABLE, "celeba"]
    with serve(dict(pristine.archives(DOWNLOADABLE))) as server:
        before = {name: (pristine.home / "datasets" / f"{name}.yaml").read_text() for name in changed}
        for name in changed:
            card = copy.deepcopy(pristine.cards[name])
            for fetch in card["fetch"]:
                fetch.pop("md5", None)
                if "url" in fetch:
                    path = f"{name}/{fetch['url'].rpartition('/')[2]}"
                    fetch |= {"url": f"{server.url}/{path}", "md5": hashlib.md5(server.files[path]).hexdigest()}
            write(pristine, name, yaml.safe_dump(card))
        yield server
        for name, text in before.items():
            write(pristine, name, text)


def write(pristine, name, text):
    from oodscope.data.public import cards

    (pristine.home / "datasets" / f"{name}.yaml").write_text(text)
    cards._parsed.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("name", DOWNLOADABLE)
def test_downloaded_unpacked_verified(name, pristine, offered, tmp_path):
    wanted = dataset_needs(name)
    assert overall(states(wanted, tmp_path, {})) is State.MISSING
    outcome = prepare(wanted, tmp_path)
    assert (outcome.failures, outcome.by_hand, outcome.lacking(wanted)) == ([], {}, [])
    assert overall(states(wanted, tmp_path, {})) is State.READY
    for each in wanted:
        there, original = (list_files(each.card, each.split, root).sizes for root in (tmp_path, pristine.root))
        assert there == original
        reports = {root: check_split(each.card, each.split, root) for root in (tmp_path, pristine.root)}
        assert reports[tmp_path].content == reports[pristine.root].content
    assert not any((tmp_path / "downloads" / name).iterdir())
    asked = len(offered.asked)
    prepare(wanted, tmp_path)
    assert len(offered.asked) == asked


@pytest.mark.slow
@pytest.mark.parametrize("name", DOWNLOADABLE)
def test_each_split_can_be_had_alone(name, offered, tmp_path):
    for each in dataset_needs(name):
        assert prepare([each], tmp_path / each.split).lacking([each]) == []


def test_a_split_that_is_no_list_needs_no_lists():
    files = load_card("ninco").files_for("all")
    assert [(card.name, fetch.md5) for card, fetch in files] == [("ninco", "b9ffae324363cd900a81ce3c367cd834")]


def test_where_a_download_fails_the_way_by_hand_is_said(pristine, tmp_path):
    with serve({"x/lists.zip": b"<html>too many users</html>"}, kind="text/html") as server:
        card = copy.deepcopy(pristine.cards["openood_lists"])
        card["fetch"][0] |= {"url": f"{server.url}/x/lists.zip", "md5": "0" * 32}
        before = (pristine.home / "datasets" / "openood_lists.yaml").read_text()
        write(pristine, "openood_lists", yaml.safe_dump(card))
        try:
            wanted = [Wanted(load_card("ninco"), "test")]
            outcome = prepare(wanted, tmp_path, confirm=lambda items: all("127" in item.fetch.url for item in items))
            assert outcome.failures == []  # nothing was agreed to
            (tmp_path / "downloads" / "ninco").mkdir(parents=True)
            (tmp_path / "downloads" / "ninco" / "ninco.zip").write_bytes(b"no archive")
            outcome = prepare(wanted, tmp_path)
        finally:
            write(pristine, "openood_lists", before)
    assert any("gave a web page, not benchmark_imglist.zip" in line for line in outcome.failures)
    assert {item.card.name for item in outcome.by_hand.values()} == {"openood_lists", "ninco"}


def test_only_what_is_needed_is_downloaded(offered, tmp_path):
    prepare([Wanted(load_card("svhn"), "test")], tmp_path)
    assert [path for path, _ in offered.asked] == ["/svhn/test_32x32.mat"]


def test_nothing_is_downloaded_without_consent(offered, tmp_path):
    asked = []
    wanted = needs_of("rtb-mnist")
    outcome = prepare(wanted, tmp_path, confirm=lambda urls: bool(asked.extend(urls)))
    assert offered.asked == []
    assert len(asked) == 8
    assert len(outcome.lacking(wanted)) == 3


def test_a_broken_file_is_fetched_again(pristine, offered, tmp_path):
    wanted = dataset_needs("dtd")
    prepare(wanted, tmp_path)
    victim = next((tmp_path / "dtd").rglob("*.JPEG"))
    victim.write_bytes(victim.read_bytes()[:100])
    told = []
    outcome = prepare(wanted, tmp_path, report_split=told.append)
    assert [[problem.where for problem in report.problems] for report in told] == [
        [victim.relative_to(tmp_path).as_posix()],
        [],
    ]
    assert outcome.lacking(wanted) == []
    assert victim.read_bytes() == (pristine.root / victim.relative_to(tmp_path)).read_bytes()


def test_one_failure_does_not_keep_others_from_coming(offered, tmp_path):
    offered.files.pop("svhn/test_32x32.mat")
    wanted = [*dataset_needs("svhn"), *dataset_needs("dtd")]
    outcome = prepare(wanted, tmp_path)
    assert len(outcome.failures) == 1
    assert "svhn/test_32x32.mat: the server says 404" in outcome.failures[0]
    assert [(each.card.name, each.split) for each in outcome.lacking(wanted)] == [("svhn", "test")]


def test_interrupted_and_resumed(offered, tmp_path):
    wanted = dataset_needs("cifar10")
    offered.break_after = 5000
    outcome = prepare(wanted, tmp_path)
    assert "broke off after 5,000 bytes" in outcome.failures[0]
    assert overall(states(wanted, tmp_path, {})) is State.MISSING
    offered.break_after = None
    assert prepare(wanted, tmp_path).lacking(wanted) == []
    assert offered.asked[-1][1] == "bytes=5000-"


def test_an_interrupted_unpack_never_passes(pristine, offered, tmp_path, monkeypatch):
    from pathlib import Path

    rename, moved = Path.replace, []

    def stop_after_three(self, target):
        if ".unpacking" in str(self):
            moved.append(target)
            if len(moved) > 3:
                raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        prepare(dataset_needs("dtd"), tmp_path)
    monkeypatch.undo()
    card = load_card("dtd")
    assert state_of(card, "all", tmp_path) is State.PARTIAL
    assert not check_split(card, "all", tmp_path).ok
    assert prepare(dataset_needs("dtd"), tmp_path).lacking(dataset_needs("dtd")) == []


def test_what_a_person_must_fetch_and_what_becomes_of_it(pristine, offered, tmp_path):
    wanted = [Wanted(load_card("celeba"), "test")]
    outcome = prepare(wanted, tmp_path)
    assert [item.fetch.name for item in outcome.by_hand.values()] == ["img_align_celeba.zip", "list_eval_partition.txt"]
    downloads = tmp_path / "downloads" / "celeba"
    downloads.mkdir(parents=True)
    (downloads / "img_align_celeba.zip").write_bytes(pack_celeba(pristine))
    shutil.copy(pristine.root / "celeba" / "list_eval_partition.txt", downloads)
    assert prepare(wanted, tmp_path).lacking(wanted) == []
    assert (downloads / "img_align_celeba.zip").exists()  # what a person brought is theirs


def pack_celeba(pristine):
    from tests.data.public.miniature import pack

    files = sorted((pristine.root / "celeba" / "img_align_celeba").iterdir())
    return pack("x.zip", {f"img_align_celeba/{path.name}": path.read_bytes() for path in files})


def test_a_file_brought_by_hand_is_compared_with_its_checksum(pristine, tmp_path):
    archive = tmp_path / "downloads" / "celeba" / "img_align_celeba.zip"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(pack_celeba(pristine))
    outcome = prepare([Wanted(load_card("celeba"), "test")], tmp_path)
    assert f"its MD5 is {md5(archive)}, not 00d2c5bc6d35e252742224ab0c1e8fcb" in outcome.failures[0]


def test_lists_are_asked_for_once_with_the_images_that_need_them(pristine, tmp_path):
    wanted, offers = needs_of("imagenet1k"), []
    outcome = prepare(wanted, tmp_path, confirm=lambda items: bool(offers.extend(items)))
    names = [item.card.name for item in offers]
    assert names.count("openood_lists") == 1
    assert set(names) == {"openood_lists", "ssb_hard", "ninco", "inaturalist", "textures", "openimage_o"}
    asked = [item.card.name for item in outcome.by_hand.values()]
    assert asked == ["imagenet_1k"] * 2  # training and validation images are two archives
    assert {each.card.name for each in outcome.lacking(wanted)} == {
        "imagenet_1k", "ssb_hard", "ninco", "inaturalist", "textures", "openimage_o",
    }  # fmt: skip
    assert "train" not in {each.split for each in outcome.lacking(wanted)}


@pytest.mark.parametrize("optional", ["id_train", "id_val"])
def test_what_one_role_needs_is_needed_though_another_can_do_without(pristine, optional):
    manifest = yaml.safe_load((pristine.home / "benchmarks" / "rtb-mnist.yaml").read_text())
    manifest["sets"][optional]["optional"] = True
    target = pristine.home / "benchmarks" / "half-optional.yaml"
    target.write_text(yaml.safe_dump(manifest))
    try:
        assert not any(each.optional for each in needs_of("half-optional"))
    finally:
        target.unlink()


class TestState:
    def test_a_verification_ends_when_anything_changes(self, own_root):
        card = load_card("tiny_imagenet")
        assert state_of(card, "val", own_root) is State.UNVERIFIED
        assert check_split(card, "val", own_root).ok
        assert state_of(card, "val", own_root) is State.READY
        changed = own_root / "tiny-imagenet-200/val/images/val_3.JPEG"
        whole = changed.read_bytes()
        changed.write_bytes(whole + b"x")
        assert state_of(card, "val", own_root) is State.UNVERIFIED
        changed.write_bytes(whole)
        assert state_of(card, "val", own_root) is State.READY
        (own_root / "tiny-imagenet-200/val/images/val_3.JPEG").unlink()
        assert state_of(card, "val", own_root) is State.PARTIAL

    def test_a_failed_check_takes_the_mark_back(self, own_root):
        card = load_card("dtd")
        assert check_split(card, "all", own_root).ok
        victim = next((own_root / "dtd").rglob("*.JPEG"))
        whole = victim.read_bytes()
        victim.write_bytes(bytes(len(whole)))
        assert state_of(card, "all", own_root) is State.READY  # same name, same size: only a check can tell
        assert not check_split(card, "all", own_root).ok
        assert state_of(card, "all", own_root) is State.UNVERIFIED

    def test_another_expectation_asks_for_a_new_check(self, own_root):
        card = load_card("species")
        assert check_split(card, "all", own_root).ok
        layout = card.split("all").model_copy(update={"count": 12})
        stricter = card.model_copy(update={"splits": {"all": layout}})
        assert state_of(stricter, "all", own_root) is State.UNVERIFIED

    def test_a_surplus_is_a_wrong_count(self, own_root):
        victim = next((own_root / "dtd").rglob("*.JPEG"))
        shutil.copy(victim, victim.with_name("extra.jpg"))
        (problem,) = check_split(load_card("dtd"), "all", own_root).problems
        assert str(problem) == "count: dtd/all (13 images, 12 expected)"

    def test_an_image_cut_in_its_last_rows_is_broken(self, own_root):
        victim = own_root / "tiny-imagenet-200/val/images/val_3.JPEG"
        victim.write_bytes(victim.read_bytes()[: int(0.9 * victim.stat().st_size)])
        (problem,) = check_split(load_card("tiny_imagenet"), "val", own_root).problems
        assert (problem.kind, problem.where) == ("broken", "tiny-imagenet-200/val/images/val_3.JPEG")
        assert "truncated" in problem.detail

    def test_a_torn_marker_is_no_verification(self, own_root):
        card = load_card("dtd")
        check_split(card, "all", own_root)
        marker = own_root / ".oodscope" / "verified" / "dtd.all.json"
        marker.write_text(marker.read_text()[:20])
        assert state_of(card, "all", own_root) is State.UNVERIFIED

    @pytest.mark.parametrize(
        ("dataset", "split", "file"),
        [
            ("ninco", "test", "benchmark_imglist/imagenet/test_ninco.txt"),
            ("tiny_imagenet", "val", "tiny-imagenet-200/val/val_annotations.txt"),
        ],
    )
    @pytest.mark.parametrize("damage", ["<html>Sign in</html>\n", "", "a.jpg\n"])
    def test_a_damaged_list_is_reported_by_name(self, own_root, dataset, split, file, damage):
        card = load_card(dataset)
        (own_root / file).write_text(damage)
        assert state_of(card, split, own_root) is State.PARTIAL
        report = check_split(card, split, own_root)
        assert [(problem.kind, problem.where) for problem in report.problems] == [("broken", file)]
        assert state_of(card, split, own_root) is State.PARTIAL

    def test_idx_files_are_measured_by_their_header(self, own_root):
        from oodscope.data.public.check import idx_fault

        path = own_root / "MNIST" / "raw" / "t10k-labels-idx1-ubyte"
        whole = path.read_bytes()
        assert idx_fault(path) is None
        for damaged, said in ((whole[:-1], "31 bytes, its header says 32"), (whole + b"x", "33 bytes"),
                              (whole[:6], "cut off in its header"), (b"PNG", "no idx file")):  # fmt: skip
            path.write_bytes(damaged)
            assert said in idx_fault(path)
