"""Each packaged benchmark, in miniature and true layout: it is prepared, checked, loaded and evaluated."""

import types

import numpy as np
import pytest
import torch
import yaml

import oodscope as oods
from oodscope.base.errors import DataError
from oodscope.data.packaged import HOME as TRUE_HOME
from oodscope.data.public.check import check_split
from oodscope.data.public.datasetspec import DatasetSpec
from oodscope.data.public.needs import needs_of
from oodscope.data.public.prepare import prepare
from oodscope.data.public.state import State, list_files, state_of
from oodscope.models.zoo.zero_shot import TextHead, zero_shot
from tests.tiny import network

NAMES = sorted(path.stem for path in (TRUE_HOME / "benchmarks").glob("*.yaml") if path.stem != "glyphs")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_is_prepared_loaded_and_evaluated(name, pristine, tmp_path):
    wanted = needs_of(name)
    outcome = prepare(wanted, pristine.root)
    assert outcome.lacking(wanted) == []
    assert {state_of(each.card, each.split, pristine.root) for each in wanted} == {State.READY}

    bench = oods.load_benchmark(name, root=pristine.root)
    declared = yaml.safe_load((pristine.home / "benchmarks" / f"{name}.yaml").read_text())["sets"]
    roles = {role for role, _ in bench.members()}
    assert roles == set(declared)
    for role, images in bench.members():
        spec = declared[role] if "source" in declared[role] else declared[role][images.name]
        assert "count" not in spec or len(images) == spec["count"]

    # volumes are prepared by whoever scores them: the benchmark says nothing of size and scale
    transform = bench.transform or oods.Preprocess(size=8, mean=(0.5,) * 3, std=(0.5,) * 3)
    net = oods.Classifier(network(classes=len(bench.class_names)), transform=transform)
    protocols = ["standard", "full_spectrum"] if bench.csid else ["standard"]
    result = oods.evaluate(net, bench, ["msp"], protocols, store=oods.ActivationStore(tmp_path / "store"))
    measured = {row.set for row in result.measurements.filter(metric="auroc")}
    assert {images.name for images in (*bench.near, *bench.far)} <= measured


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_missing_and_a_cut_off_file_are_reported_by_name(name, pristine):
    for each in needs_of(name)[:2]:
        files = [file for file, size in list_files(each.card, each.split, pristine.root).sizes.items() if size]
        victim = pristine.root / files[-1]
        whole = victim.read_bytes()
        try:
            victim.write_bytes(whole[: len(whole) // 2])
            assert state_of(each.card, each.split, pristine.root) is not State.READY
            problems = check_split(each.card, each.split, pristine.root).problems
            assert [(problem.kind, problem.where) for problem in problems] == [("broken", files[-1])]
            assert state_of(each.card, each.split, pristine.root) is State.UNVERIFIED
            with pytest.raises(DataError, match=f"oodscope data check {name} --root"):
                oods.load_benchmark(name, root=pristine.root)
            victim.unlink()
            report = check_split(each.card, each.split, pristine.root)
            if each.card.split(each.split).layout == "folder":
                assert [problem.detail for problem in report.problems] == ["11 images, 12 expected"]
            else:
                assert [(problem.kind, problem.where) for problem in report.problems] == [("missing", files[-1])]
            assert state_of(each.card, each.split, pristine.root) in (State.PARTIAL, State.MISSING)
        finally:
            victim.write_bytes(whole)
            check_split(each.card, each.split, pristine.root)


class TestLoading:
    def test_missing_data_is_one_line_with_the_command(self, pristine, tmp_path):
        with pytest.raises(
            DataError, match=f"dataset 'cifar10', split 'test': missing under {tmp_path}. Get it: "
        ) as error:
            oods.load_benchmark("cifar10", root=tmp_path)
        assert f"oodscope data prepare cifar10 --root {tmp_path}" in str(error.value)
        assert "\n" not in str(error.value)

    def test_the_root_comes_from_the_environment_or_the_cache(self, pristine, monkeypatch, tmp_path):
        prepare(needs_of("rtb-cifar10"), pristine.root)
        with pytest.raises(DataError, match=str(tmp_path / "cache" / "data")):
            oods.load_benchmark("rtb-cifar10")
        monkeypatch.setenv("OODSCOPE_ROOT", str(pristine.root))
        assert len(oods.load_benchmark("rtb-cifar10").id_test) == 40

    def test_what_is_optional_may_be_missing_and_the_result_says_so(self, own_root, tmp_path):
        import shutil

        shutil.rmtree(own_root / "images_classic" / "tin597")
        (own_root / "benchmark_imglist" / "cifar10" / "train_tin597.txt").unlink()
        prepare(needs_of("cifar10"), own_root)
        bench = oods.load_benchmark("cifar10", root=own_root)
        assert bench.ood_train is None
        result = oods.evaluate(network(classes=10), bench, ["msp"], store=oods.ActivationStore(tmp_path / "store"))
        assert f"ood_train left out: tin597 is not under {own_root}" in result.record.notes

    def test_a_part_of_the_optional_is_an_error(self, own_root):
        next((own_root / "images_classic" / "tin597").rglob("*.jpg")).unlink()
        prepare(needs_of("cifar10"), own_root)
        with pytest.raises(DataError, match="'tin597', split 'train': partial"):
            oods.load_benchmark("cifar10", root=own_root)

    @pytest.mark.parametrize(
        ("found", "absent"), [("ready missing", False), ("missing missing", True), ("ready", False)]
    )
    def test_absent_means_that_nothing_is_there(self, found, absent):
        states = iter([State(word) for word in found.split()])
        datasets = types.SimpleNamespace(state=lambda dataset, split: next(states))
        spec = DatasetSpec(source="dataset", dataset="openimage_o", split=["val", "test"][: len(found.split())])
        assert spec.absent(datasets) is absent

    def test_another_count_names_both_numbers(self, pristine, monkeypatch):
        from oodscope.data.public import datasetspec

        prepare(needs_of("rtb-cifar10"), pristine.root)
        monkeypatch.setattr(datasetspec, "join", lambda name, parts: parts[0].take(np.arange(13), name))
        with pytest.raises(DataError, match="set 'id_test' of cifar10: 13 images, 40 expected"):
            oods.load_benchmark("rtb-cifar10", root=pristine.root)

    def test_unreadable_images_may_be_skipped_on_request(self, own_root):
        broken = next((own_root / "dtd").rglob("*.JPEG"))
        broken.write_bytes(b"no image")
        prepare(needs_of("cifar100"), own_root, confirm=lambda urls: False)
        bench = oods.load_benchmark("cifar100", root=own_root, skip_unreadable=True)
        (textures,) = [images for images in bench.far if images.name == "texture"]
        assert len(textures) == 11
        assert textures.skipped == (broken.relative_to(own_root / "dtd/dtd/images").as_posix(),)

    def test_parts_of_one_split_share_their_source(self, pristine):
        prepare(needs_of("cifar10"), pristine.root)
        bench = oods.load_benchmark("cifar10", root=pristine.root)
        assert bench.id_val.source is bench.id_test.source
        assert bench.ood_val.source is bench.near[1].source
        assert not set(bench.ood_val.rows) & set(bench.near[1].rows)


class TestCuts:
    """What the manifests cut out is what the papers say."""

    def bench(self, name, pristine):
        prepare(needs_of(name), pristine.root)
        return oods.load_benchmark(name, root=pristine.root)

    def test_a_random_share_and_its_rest_fit(self, pristine):
        bench = self.bench("evg-cifar10", pristine)
        assert (len(bench.id_train), len(bench.id_val)) == (36, 4)
        assert sorted([*bench.id_train.rows, *bench.id_val.rows]) == list(range(40))

    def test_celeba_is_cropped_before_it_shrinks(self, pristine, monkeypatch):
        bench = self.bench("evg-cifar10", pristine)
        (celeba,) = [images for images in bench.far if images.name == "celeba"]
        assert celeba.source.side == 140
        monkeypatch.setattr(celeba.source, "side", 10)
        (image,) = celeba.images([3])
        parent = celeba.source.parent.read(int(celeba.rows[3]))
        assert np.array_equal(image, parent[5:15, 5:15])

    def test_superclasses_give_one_outlier_class_each(self, pristine):
        bench = self.bench("dcv-supercifar100", pristine)
        (outliers,) = bench.near
        groups = pristine.cards["cifar100"]["hierarchy"]["superclass"]
        assert (len(bench.class_names), len(outliers.class_names)) == (80, 20)
        assert set(bench.class_names) | set(outliers.class_names) == {cls for group in groups.values() for cls in group}
        assert all(len(set(group) & set(outliers.class_names)) == 1 for group in groups.values())
        named = [bench.class_names[label] for label in bench.id_test.labels]
        assert all(cls in groups[group] for cls, group in zip(named, bench.id_test.hierarchy["superclass"]))

    def test_imagenet_800_has_no_class_of_imagenet_200(self, pristine):
        bench = self.bench("imagenet200", pristine)
        known = set((TRUE_HOME / "lists" / "imagenet_200.txt").read_text().split())
        assert len(bench.ood_train.class_names) == 2
        assert not known & set(bench.ood_train.class_names)

    def test_imagenet_c_is_not_resized_again(self, pristine):
        bench = self.bench("imagenet200-fs", pristine)
        (corrupted,) = [images for images in bench.csid if images.name == "imagenet_c"]
        (image,) = corrupted.images([0])
        seen = bench.transform([image])[0].permute(1, 2, 0).numpy()
        mean, std = np.array(bench.transform.mean), np.array(bench.transform.std)
        assert np.allclose(seen * std + mean, np.asarray(image) / 255.0, atol=1e-5)
        plain = bench.transform([np.asarray(image).view(np.ndarray)])
        assert not np.allclose(plain[0].permute(1, 2, 0).numpy(), seen)
        assert corrupted.digests() != [corrupted.source.parent.digests[row] for row in corrupted.rows]

    def test_folders_named_by_wordnet_id_get_the_labels_of_the_lists(self, pristine):
        bench = self.bench("imagenet1k-shifts", pristine)
        (hard,) = [images for images in bench.csid if images.name == "imagenet_a"]
        wnids = (TRUE_HOME / "lists" / "imagenet_1k.txt").read_text().split()
        folders = [name.partition("/")[0] for name in hard.sample_ids()]
        assert [wnids[label] for label in bench.id_labels("csid", hard)] == folders

    def test_clip_reads_words_where_the_lists_have_numbers(self, pristine):
        bench = self.bench("imagenet1k", pristine)
        sentences = []

        def embed(batch):
            sentences.extend(batch)
            return torch.randn(len(batch), 4, generator=torch.Generator().manual_seed(0))

        net = zero_shot(torch.nn.Flatten(), embed, bench.class_names, TextHead(), scale=1.0)
        assert "a photo of a tench." in sentences
        assert not any("of a 0" in sentence for sentence in sentences)
        other = zero_shot(torch.nn.Flatten(), embed, ["carp", *bench.class_names[1:]], TextHead(), scale=1.0)
        assert net.digest != other.digest

    def test_joined_splits_keep_their_labels_and_names(self, pristine):
        bench = self.bench("dcv-cifar10-mnist", pristine)
        from torchvision import datasets

        parts = [datasets.CIFAR10(str(pristine.root), train=train) for train in (True, False)]
        assert bench.id_test.labels.tolist() == [label for part in parts for label in part.targets]
        pixels = np.concatenate([part.data for part in parts])
        assert all(np.array_equal(image, pixels[row]) for row, image in enumerate(bench.id_test.images(range(80))))
        assert len(set(bench.id_test.sample_ids())) == 80

    def test_tiny_imagenet_is_cut_by_the_numbers_of_its_files(self, pristine):
        bench = self.bench("cifar10", pristine)
        numbers = np.flatnonzero(pristine.masks["cifar10_tin_val"])
        assert bench.ood_val.sample_ids() == [f"val_{number}.JPEG" for number in numbers]
        assert [bench.ood_val.class_names[label] for label in bench.ood_val.labels] == [
            f"n{number % 4:08d}" for number in numbers
        ]

    def test_celeba_parts_have_no_classes(self, pristine):
        (celeba,) = [images for images in self.bench("evg-cifar10", pristine).far if images.name == "celeba"]
        assert set(celeba.labels) == {-1}
        assert all(int(name.partition(".")[0]) % 3 == 2 for name in celeba.sample_ids())
