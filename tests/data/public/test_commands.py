"""`oodscope data`: what a person sees."""

import json
import shutil
import subprocess
import sys

import pytest

from oodscope.data.public.needs import needs_of
from oodscope.data.public.prepare import prepare
from tests.cli.conftest import oodscope  # noqa: F401


@pytest.fixture
def run(oodscope, pristine):  # noqa: F811
    return oodscope


@pytest.mark.slow
def test_list_shows_the_state_under_the_root(run, own_root):
    prepare(needs_of("dcv-cifar10-dtd"), own_root)
    shutil.rmtree(own_root / "svhn")
    listed = json.loads(run("data", "list", "--root", own_root, "--json").out)
    assert listed["root"] == str(own_root)
    states = {name: entry["state"] for kind in ("benchmarks", "datasets") for name, entry in listed[kind].items()}
    assert states["dcv-cifar10-dtd"] == "ready"
    assert states["glyphs"] == "ready"
    assert states["dtd"] == "ready"
    assert states["kmnist"] == "unverified"
    assert states["svhn"] == "missing"
    assert states["evg-cifar10"] == "partial"
    shown = run("data", "list", "--root", own_root).out
    assert all(name in shown for name in states)


def test_show_a_benchmark(run, pristine):
    shown = run("data", "show", "cifar10", "--root", pristine.root).out
    told = [
        "cifar10 openood-1.5", "OpenOOD v1.5", "interpolation bilinear", "tiny_imagenet/val, rows cifar10_tin_test",
        "mnist/train+test", "MD5 c58f30108f718f92721af3b95e74349a", "non-commercial use only", "by hand:",
    ]  # fmt: skip
    assert [part for part in told if part not in shown] == []
    described = json.loads(run("data", "show", "dcv-supercifar100", "--json").out)
    assert [each["count"] for each in described["sets"]] == [320, 80]
    assert "level superclass, share 0.2, seed 42, keep drawn" in described["sets"][1]["from"]
    assert run("data", "show", "cifar10-fs").out.count("corruptions c of id_test, seed 0") == 1


def test_show_a_dataset(run):
    shown = run("data", "show", "celeba").out
    assert "split test: 24 images, missing" in shown
    assert "by hand: img_align_celeba.zip" in shown
    assert "benchmark_imglist.zip" in run("data", "show", "openood_lists").out


def test_check_names_each_file_and_writes_all(run, own_root):
    gone = sorted((own_root / "images_classic" / "places365" / "listed_cifar10").iterdir())[:13]
    for path in gone:
        path.unlink()
    broken = own_root / "svhn" / "test_32x32.mat"
    broken.write_bytes(broken.read_bytes()[:-1])
    outcome = run("data", "check", "cifar10", "--root", own_root, "--output", own_root / "report.json")
    assert outcome.status == 1
    assert "places365/cifar10: 13 problems" in outcome.out
    assert outcome.out.count("  missing: images_classic/places365/listed_cifar10/") == 10
    assert "missing: 3 more; --output FILE lists all" in outcome.out
    assert "broken: svhn/test_32x32.mat (its MD5 is " in outcome.out
    assert "tiny_imagenet/val: ready, 40 images" in outcome.out
    report = json.loads((own_root / "report.json").read_text())
    named = {problem["where"] for split in report["splits"] for problem in split["problems"]}
    assert named == {path.relative_to(own_root).as_posix() for path in (*gone, broken)}
    again = run("data", "check", "cifar10", "--root", own_root, "--json")
    assert json.loads(again.out) == report


def test_check_passes_over_what_is_optional_and_missing(run, own_root):
    shutil.rmtree(own_root / "images_classic" / "tin597")
    (own_root / "benchmark_imglist" / "cifar10" / "train_tin597.txt").unlink()
    outcome = run("data", "check", "cifar10", "--root", own_root)
    assert outcome.status == 0, outcome
    assert "tin597" not in outcome.out


def test_prepare_says_what_to_fetch_by_hand(run, own_root):
    shutil.rmtree(own_root / "celeba")
    outcome = run("data", "prepare", "evg-cifar10", "--root", own_root)
    assert outcome.status == 1
    assert "by hand, celeba: img_align_celeba.zip, from the Google Drive folder" in outcome.out
    assert f"Put it into {own_root / 'downloads' / 'celeba'} and run this again." in outcome.out
    assert "missing: celeba/test" in outcome.out
    assert "svhn/test: ready, 30 images" in outcome.out
    outcome = run("data", "prepare", "rtb-cifar10", "--root", own_root)
    assert outcome.status == 0
    assert f"rtb-cifar10: ready under {own_root}" in outcome.out


def test_prepare_asks_before_it_downloads(run, tmp_path):
    outcome = run("data", "prepare", "dtd", "--root", tmp_path / "root")
    assert outcome.status == 1
    assert "to download: https://www.robots.ox.ac.uk/~vgg/data/dtd/download/dtd-r1.0.1.tar.gz" in outcome.err


@pytest.mark.parametrize("command", ["show", "prepare", "check"])
def test_unknown_names_suggest_the_nearest(run, command):
    outcome = run("data", command, "cifra10")
    assert outcome.status == 2
    assert outcome.err.startswith("oodscope: unknown benchmark or dataset 'cifra10'. Did you mean 'cifar10'")


def test_evaluate_takes_the_root(run, tmp_path):
    weights = tmp_path / "x.safetensors"
    weights.write_bytes(b"read after the images are found")
    outcome = run(
        "evaluate", "--model", "small_cnn", "--weights", weights, "--benchmark", "cifar10", "--root", tmp_path,
        "--detectors", "msp",
    )  # fmt: skip
    assert outcome.status == 1
    assert outcome.err.strip().endswith(f"oodscope data prepare cifar10 --root {tmp_path}")


def test_a_job_finds_its_root_beside_its_file(pristine, tmp_path):
    from oodscope.jobs.job import read_job

    path = tmp_path / "job.yaml"
    path.write_text("benchmark: cifar10\nroot: images\nmodel: {architecture: cnn_small, weights: x.safetensors}\n")
    assert read_job(path).root == str(tmp_path / "images")


@pytest.mark.slow
def test_help_imports_nothing_heavy():
    script = (
        "import sys; from oodscope.cli.app import app\n"
        "try: app(['data', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'numpy', 'PIL'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
