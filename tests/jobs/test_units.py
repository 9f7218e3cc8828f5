"""Divided jobs: whoever does the units, every score and interval is that of one process, to the bit."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import oodscope as oods
from oodscope.base.errors import OodscopeError, UsageError
from oodscope.data.images.files import FileSource
from oodscope.execution.launch.local import LocalLauncher
from oodscope.execution.plan import WorkPlan
from oodscope.execution.units import Share
from oodscope.execution.work import work
from oodscope.jobs.run import declared_file, execute_file, execute_plan
from oodscope.jobs.units.divided import write_plan
from oodscope.jobs.units.kinds import KINDS, do
from tests.execution.simulated_slurm import ended, install
from tests.jobs.project import job, study


def numbers(result):
    """Scores and measurements without what is about the run itself, or about the clock."""
    rows = result.measurements.to_dataframe()
    kept = [name for name in rows if name not in ("run", "fit_seconds", "microseconds_per_image", "peak_mib")]
    return result.scores.frame, rows[kept]


def same(left, right):
    for ours, theirs in zip(numbers(left), numbers(right)):
        assert list(ours.columns) == list(theirs.columns) and len(ours) == len(theirs)
        assert ours.equals(theirs)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """One process, nothing divided."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OODSCOPE_CACHE", str(folder / "cache"))
        return oods.run(job(folder))


pytestmark = pytest.mark.slow


def test_units_done_in_any_order_give_the_numbers_of_one_process(expected, tmp_path):
    plan = write_plan(declared_file(job(tmp_path)), tmp_path / "plan", workers=3)
    kinds = {unit.kind for unit in plan.units}
    assert kinds == {"train", "extract", "score"} and len(plan.units) > 10
    for number in (2, 0, 1):
        work(WorkPlan(plan.folder), do, share=Share(number=number, count=3), kinds=["train", "extract"])
    work(WorkPlan(plan.folder), do, share=Share(number=1, count=2))
    finished = execute_plan(plan.folder, None)
    same(finished.result, expected)
    assert finished.result.record.forward_images == expected.record.forward_images


def test_a_search_and_thresholds_on_training_images_are_divided_too(tmp_path):
    changes = {"tune": "ood_val", "detectors": ["react", "odin", "knn"], "protocols": ["standard", "human_centric"]}
    whole = oods.run(job(tmp_path / "a", **changes))
    os.environ["OODSCOPE_CACHE"] = str(tmp_path / "other")  # restored by the fixture of all tests
    path = job(tmp_path / "b", **changes)
    plan = write_plan(declared_file(path), tmp_path / "plan", workers=2)
    same(execute_plan(plan.folder, None).result, whole)


def test_two_processes_and_a_kill_give_the_numbers_of_one(expected, tmp_path):
    path = job(tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "oodscope", "run", str(path), "--workers", "2", "-q", "--json"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    kill_a_worker(tmp_path / "out", random.Random(0))
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    (run,) = (tmp_path / "out").glob("*/run.json")
    same(oods.Result.load(run.parent), expected)
    assert not list((tmp_path / "out" / "plans").glob("*/plan.json")), "the plan goes when its result is there"


def workers_of(output):
    """Processes that work on a plan in this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"work" in words and any(word.startswith(str(output).encode()) for word in words):
            found.append(int(path.parent.name))
    return found


def kill_a_worker(output, chance, patience=120.0):
    """SIGKILL to a worker that is at a unit."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        busy = list(output.glob("plans/*/running/*/*.json"))
        workers = workers_of(output)
        if busy and workers:
            os.kill(chance.choice(workers), signal.SIGKILL)
            return True
        time.sleep(0.02)
    return False


@pytest.mark.soak
def test_three_processes_and_twenty_kills_give_the_numbers_of_one(expected, tmp_path):
    path = job(tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    kills, chance = 0, random.Random(1)
    while kills < 20:
        command = [sys.executable, "-m", "oodscope", "run", str(path), "--workers", "3", "-q"]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while process.poll() is None and kills < 20:
            kills += kill_a_worker(tmp_path / "out", chance, 5.0)
            time.sleep(chance.uniform(0.1, 3.0))
        process.communicate(timeout=900)
    same(execute_file(path, launcher=LocalLauncher(3)).result, expected)


@pytest.mark.soak
def test_an_array_with_preempted_tasks_gives_the_numbers_of_one(expected, tmp_path, monkeypatch):
    for name, value in install(tmp_path, preempted=[0, 2]).items():
        monkeypatch.setenv(name, value)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "oodscope", "run", str(job(tmp_path)), "--on", "slurm", "--workers", "8", "-q"]
    subprocess.run(command, env=environment, check=True, timeout=900)
    statuses = [status for _, status in ended(tmp_path)]
    assert statuses.count("143") == 2 and statuses.count("0") == 8 + 1
    (run,) = (tmp_path / "out").glob("*/run.json")
    same(oods.Result.load(run.parent), expected)


def test_a_study_is_shared_by_two_processes_and_each_model_is_evaluated_once(tmp_path):
    models = [
        {"architecture": "small_cnn", "name": f"net {seed}", "train": {"epochs": 8, "seed": seed}} for seed in range(2)
    ]
    path = study(tmp_path, models, images_per_class=40)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "oodscope", "run", str(path), "-q"]
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in both:
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
    assert len(list((tmp_path / "out").glob("glyphs-*/run.json"))) == len(models)


def pictures(folder, count, seed):
    """PNG files of two classes."""
    draws = np.random.default_rng(seed)
    for number in range(count):
        path = folder / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draws.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(path)
    return str(folder)


def test_networks_with_weights_share_decoded_images(tmp_path, monkeypatch):
    """Each image is decoded once for all three, with the numbers of each alone; a broken fourth costs only itself."""
    counts = {"id_val": 10, "id_test": 12, "few": 7}
    sets = {name: pictures(tmp_path / name, count, count) for name, count in counts.items()}
    models = []
    for seed in range(4):
        torch.manual_seed(seed)
        network, _ = oods.create_model("small_cnn", num_classes=2)
        save_file(network.state_dict(), tmp_path / f"{seed}.safetensors")
        models.append(
            {"architecture": "small_cnn", "name": f"net {seed}", "weights": str(tmp_path / f"{seed}.safetensors")}
        )
    (tmp_path / "3.safetensors").write_bytes(b"broken")
    declared = {
        "benchmark": {
            "id_val": sets["id_val"],
            "id_test": sets["id_test"],
            "near": {"few": sets["few"]},
            "transform": {"size": 32},
        },
        "detectors": ["msp"],
        "protocols": ["human_centric"],
        "device": "cpu",
        "output": str(tmp_path / "out"),
    }
    path = tmp_path / "alone.yaml"
    spec = {key: value for key, value in models[1].items() if key != "name"}
    path.write_text(json.dumps({**declared, "model": spec, "output": str(tmp_path / "alone")}))
    alone = oods.run(path)
    monkeypatch.setenv("OODSCOPE_CACHE", str(tmp_path / "other"))
    monkeypatch.setenv("OODSCOPE_WORKERS", "0")
    path = tmp_path / "study.yaml"
    path.write_text(json.dumps({**declared, "models": models}))
    plan = write_plan(declared_file(path), tmp_path / "plan")
    assert [unit.kind for unit in plan.units] == ["decode"] * 3 + ["evaluate"] * 4
    rows, plain = [], FileSource.picture
    monkeypatch.setattr(FileSource, "picture", lambda self, row: rows.append(row) or plain(self, row))
    work(plan, do, kinds=["decode"])
    assert len(rows) == sum(counts.values())
    work(plan, do)
    assert not plan.has_failed(plan.units[0].name) and "3.safetensors" in plan.record(plan.units[0].name)["left_out"][0]
    assert [unit.label for unit in plan.units if plan.has_failed(unit.name)] == ["evaluate net 3"]
    same(oods.Result.load(tmp_path / "out" / plan.record(plan.units[4].name)["folder"]), alone)


def test_a_model_that_fails_leaves_the_others(tmp_path):
    models = [
        {"architecture": "small_cnn", "name": "good", "train": {"epochs": 8}},
        {"architecture": "small_cnn", "name": "bad", "train": {"epochs": 1, "learning_rate": 1e30}},
    ]
    path = study(tmp_path, models, images_per_class=40)
    with pytest.raises(OodscopeError, match="evaluate bad: .*1 of 2 units failed"):
        oods.run(path)
    assert len(list((tmp_path / "out").glob("glyphs-*/run.json"))) == 1


def test_draws_of_a_cross_validation_are_divided(tmp_path):
    declared = {
        "benchmark": ["glyphs"],
        "images_per_class": 6,
        "model": {"architecture": "small_cnn", "train": None, "weights": None},
        "backbone": "full",
        "train": {"epochs": 1},
        "plan": {"folds": 2, "repetitions": 1, "hold_outs": 1, "detectors": ["msp", "knn"]},
        "device": "cpu",
    }
    frames = []
    for name, launch in (("a", None), ("b", 2)):
        path = tmp_path / f"{name}.yaml"
        path.write_text(json.dumps({**declared, "output": str(tmp_path / name)}))
        if launch:
            plan = write_plan(declared_file(path), tmp_path / "plan", workers=launch)
            assert {unit.kind for unit in plan.units} == {"fold"}
            work(plan, do, share=Share(number=1, count=2))
            frames.append(execute_plan(plan.folder, None).result.draws.frame)
        else:
            frames.append(oods.run(path).draws.frame)
    shown = [frame.drop(columns=[name for name in frame if "seconds" in name]) for frame in frames]
    assert shown[0].equals(shown[1])


def test_searches_of_an_attack_are_divided(tmp_path):
    declared = {
        "benchmark": "glyphs",
        "images_per_class": 5,
        "detectors": ["msp", "knn"],
        "device": "cpu",
        "model": {"architecture": "small_cnn", "train": {"epochs": 1}},
        "attack": {"variations": ["color"], "budget": "8", "chains": 8},
    }
    frames = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(json.dumps({**declared, "output": str(tmp_path / name)}))
        if name == "b":
            plan = write_plan(declared_file(path), tmp_path / "plan", workers=2)
            assert [unit.kind for unit in plan.units] == ["search", "search"]
            work(plan, do, share=Share(number=1, count=2))
            frames.append(execute_plan(plan.folder, None).result.result.scores.frame)
        else:
            frames.append(oods.run(path).result.scores.frame)
    assert frames[0].equals(frames[1])


def test_other_bytes_under_the_same_name_are_another_plan(tmp_path):
    first = write_plan(declared_file(job(tmp_path / "a")), tmp_path / "one")
    second = write_plan(declared_file(job(tmp_path / "b", images_per_class=6)), tmp_path / "two")
    assert not {unit.name for unit in first.units} & {unit.name for unit in second.units}


def test_what_is_one_piece_of_work_says_so(tmp_path):
    path = tmp_path / "train.yaml"
    path.write_text(json.dumps({"benchmark": "glyphs", "train": {"epochs": 1}, "model": {"architecture": "small_cnn"}}))
    with pytest.raises(UsageError, match="one piece of work"):
        oods.run(path, workers=2)


def test_every_kind_of_unit_can_be_imported():
    from oodscope.base.registry import load_target

    assert all(
        callable(load_target("kind of unit", kind, target)) for kind, target in KINDS.items() if kind != "search"
    )
