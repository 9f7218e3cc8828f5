"""Does it matter who does the work, and what does dividing it cost?

    python benchmarks/scale.py numbers overhead study stores soak ranks # minutes each; other work may share the cores
    python benchmarks/scale.py speed                                   # an idle machine with two cores, 4 minutes
    python benchmarks/scale.py page                                    # the page again, from what is there

Each part writes its figures to docs/results/data/scale.json, from which scale_page.py writes docs/results/scale.md.
``numbers`` takes names of its ways too: ``numbers:kills,ray``.
"""

import argparse
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scale_page import FIGURES, write_page

HERE = Path(__file__).parents[1]
DETECTORS = ["msp", "ebo", "nci", "mds", "vim", "knn", "react", "odin", "klm", "dice", "gen", "rmds"]
KILLS, MODELS, SYNTHETIC = 20, 20, 100_000
BLOCK = 1024
Figures = dict[str, Any]


def environment(folder: Path) -> dict[str, str]:
    """One thread, this code, and a cache of its own."""
    path = os.pathsep.join([str(HERE / "src"), str(HERE), str(folder), *filter(None, sys.path)])
    return {
        **os.environ,
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
        "OODSCOPE_CACHE": str(folder / "cache"),
        "OODSCOPE_WORKERS": "0",
    }


def oodscope(folder: Path, *words: str, wait: bool = True) -> "subprocess.Popen[str]":
    """The command line, in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "oodscope", *words, "-q"],
        env=environment(folder),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if wait and process.wait():
        raise SystemExit(f"oodscope {' '.join(words)}: {process.stderr.read() if process.stderr else ''}")
    return process


def job(folder: Path, **changes: Any) -> Path:
    """The evaluation that everybody does: glyphs, a small network that is trained, twelve detectors."""
    declared = {
        "benchmark": "glyphs",
        "images_per_class": 5,
        "detectors": DETECTORS,
        "protocols": ["standard", "full_spectrum"],
        "device": "cpu",
        "model": {"architecture": "small_cnn", "train": {"epochs": 1}},
        "output": str(folder / "out"),
        **changes,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "job.yaml"
    path.write_text(json.dumps(declared))
    return path


def digests(output: Path) -> Figures:
    """Of every score and of every measurement with its interval; and how many images went through the network."""
    import oodscope as oods

    (run,) = output.glob("*/run.json")
    result = oods.Result.load(run.parent)
    rows = result.measurements.to_dataframe()
    clock = ("run", "fit_seconds", "microseconds_per_image", "peak_mib")
    rows = rows[[name for name in rows if name not in clock]].astype(str)
    scores = result.scores.frame
    values = np.ascontiguousarray(scores.select_dtypes("number").to_numpy(dtype=np.float64))
    names = scores.select_dtypes(exclude="number").astype(str)
    return {
        "scores": len(scores),
        "numbers": len(rows),
        "digest": [
            f"{pd.util.hash_pandas_object(names, index=False).sum():016x}",
            f"{hash_bytes(values.tobytes())}",
            f"{pd.util.hash_pandas_object(rows, index=False).sum():016x}",
        ],
        "forwarded": int(result.record.forward_images or 0),
    }


def hash_bytes(content: bytes) -> str:
    """SHA-256, shortened."""
    from hashlib import sha256

    return sha256(content).hexdigest()[:16]


def one_process(folder: Path) -> Figures:
    """Nothing divided."""
    oodscope(folder, "run", str(job(folder)))
    return digests(folder / "out")


def two_workers(folder: Path) -> Figures:
    """``--workers 2``."""
    oodscope(folder, "run", str(job(folder)), "--workers", "2")
    return digests(folder / "out")


def by_hand(folder: Path) -> Figures:
    """``plan``, then ``work`` in two processes that somebody starts, then ``run``."""
    oodscope(folder, "plan", str(job(folder)), "-o", "plan", "--workers", "2")
    both = [oodscope(folder, "work", "plan", "--share", f"{number}/2", wait=False) for number in range(2)]
    if any(process.wait() for process in both):
        raise SystemExit(f"work: {[each.stderr.read() for each in both if each.stderr]}")
    oodscope(folder, "run", "plan")
    return digests(folder / "out")


def busy_workers(output: Path) -> list[int]:
    """Processes that are at a unit of a plan in this folder."""
    found = []
    for path in output.glob("plans/*/running/*/*.json"):
        try:
            found.append(int(json.loads(path.read_text())["pid"]))
        except (OSError, ValueError, KeyError):
            continue
    return [pid for pid in found if Path(f"/proc/{pid}").exists()]


def kills(folder: Path) -> Figures:
    """``--workers 3``, and SIGKILL to a worker that is at a unit, twenty times; a run that gave up is started again."""
    path, chance, done = job(folder), random.Random(1), 0
    starts = 0
    while True:
        process, starts = oodscope(folder, "run", str(path), "--workers", "3", wait=False), starts + 1
        while process.poll() is None:
            pids = busy_workers(folder / "out")
            if done < KILLS and pids:
                os.kill(chance.choice(pids), signal.SIGKILL)
                done += 1
                time.sleep(chance.uniform(0.1, 2.0))
            time.sleep(0.05)
        if process.returncode == 0:
            break
        if starts > 3 * KILLS:
            raise SystemExit(f"kills: {process.stderr.read() if process.stderr else ''}")
    return {**digests(folder / "out"), "kills": done, "starts": starts}


def ray(folder: Path) -> Figures:
    """A head and two workers on loopback, one of them killed with units done and units left."""
    from ray.cluster_utils import Cluster

    path = job(folder)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    os.environ["RAY_ADDRESS"] = cluster.address
    killed: list[int] = []

    def kill() -> None:
        while not killed:
            done = list((folder / "out" / "plans").glob("*/done/*.json"))
            if len(done) >= 4:
                killed.append(len(done))
                cluster.remove_node(nodes[0], allow_graceful=False)
            time.sleep(0.05)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        oodscope(folder, "run", str(path), "--on", "ray", "--workers", "2")
    finally:
        killed.append(-1)
        thread.join(60)
        cluster.shutdown()
        del os.environ["RAY_ADDRESS"]
    return {**digests(folder / "out"), "done when it was killed": killed[0]}


SBATCH = """#!/usr/bin/env python3
# an array whose tasks run at once, three at a time; those named in PREEMPTED get SIGTERM at their first unit
import os, pathlib, re, subprocess, sys, time
script = pathlib.Path(sys.argv[-1])
tasks = re.search(r"--array=0-(\\d+)", script.read_text())
waiting = list(range(int(tasks[1]) + 1)) if tasks else [None]
log, running = pathlib.Path(os.environ["FAKE_SLURM"]), []
preempted = set(os.environ["PREEMPTED"].split(",")) if tasks else set()
while waiting or running:
    while waiting and len(running) < 3:
        task = waiting.pop(0)
        env = dict(os.environ, SLURM_ARRAY_JOB_ID="7", **({} if task is None else {"SLURM_ARRAY_TASK_ID": str(task)}))
        running.append((task, subprocess.Popen(["bash", str(script)], env=env)))
    for task, process in list(running):
        if str(task) in preempted and list(script.parent.glob("running/*/*.json")):
            time.sleep(0.2)
            preempted.discard(str(task))
            process.terminate()
        if process.poll() is not None:
            running.remove((task, process))
            log.open("a").write(f"{task} {process.returncode}\\n")
            if process.returncode == 143:
                waiting.append(task)
    time.sleep(0.05)
print(7)
"""


def slurm(folder: Path) -> Figures:
    """``--on slurm`` with an ``sbatch`` that runs an array of eight here; two tasks are preempted by SIGTERM."""
    path = job(folder)
    tools = folder / "bin"
    tools.mkdir()
    for name, text in {"sbatch": SBATCH, "scontrol": "#!/bin/sh\nexit 0\n"}.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    known = {"PATH": os.environ["PATH"], "FAKE_SLURM": str(folder / "slurm.txt"), "PREEMPTED": "0,3"}
    os.environ.update({**known, "PATH": f"{tools}{os.pathsep}{known['PATH']}"})
    try:
        oodscope(folder, "run", str(path), "--on", "slurm", "--workers", "8")
    finally:
        os.environ["PATH"] = known["PATH"]
    statuses = [line.split() for line in (folder / "slurm.txt").read_text().splitlines()]
    preempted = sum(status == "143" for _, status in statuses)
    return {**digests(folder / "out"), "tasks": len(statuses), "preempted": preempted}


WAYS: dict[str, Callable[[Path], Figures]] = {
    "one process": one_process,
    "two workers": two_workers,
    "by hand": by_hand,
    "kills": kills,
    "ray": ray,
    "slurm": slurm,
}


def numbers(folder: Path, chosen: list[str], known: Figures) -> Iterator[Figures]:
    """The digests of every way, once more after each."""
    for way in chosen or WAYS:
        started = time.monotonic()
        drawn = [each / "cache" / "glyphs" for each in folder.iterdir() if (each / "cache" / "glyphs").is_dir()]
        if drawn:  # pictures are drawn once for all ways
            shutil.copytree(drawn[0], folder / way.replace(" ", "-") / "cache" / "glyphs")
        known = {**known, way: WAYS[way](folder / way.replace(" ", "-"))}
        print(f"numbers: {way}: {known[way]['digest']} in {time.monotonic() - started:.0f} s", flush=True)
        yield known


NETWORK = """
import torch
from torch import nn


def build():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10),
    )
"""


def synthetic(folder: Path, count: int) -> Path:
    """A job on made-up images of 64 pixels and a small network, whose extraction is what is measured."""
    folder.mkdir(parents=True, exist_ok=True)
    draws = np.random.default_rng(0)
    base = draws.integers(0, 256, (BLOCK, 64, 64, 3), dtype=np.uint8)
    images = np.concatenate([base + np.uint8(number) for number in range(-(-count // BLOCK))])[:count]
    np.savez(folder / "images.npz", images=images, labels=np.arange(count) % 10)
    few = draws.integers(0, 256, (200, 64, 64, 3), dtype=np.uint8)
    np.savez(folder / "few.npz", images=few)
    (folder / "scale_network.py").write_text(NETWORK)
    sets = {"id_test": str(folder / "images.npz"), "near": {"few": str(folder / "few.npz")}, "transform": {"size": 64}}
    return job(
        folder,
        benchmark=sets,
        images_per_class=None,
        detectors=["msp"],
        protocols=["standard"],
        model={"architecture": "python:scale_network:build"},
    )


def extraction_rate(folder: Path, path: Path, workers: int) -> Figures:
    """Images a second while all of these workers work: from when the last has done its first unit to the last unit."""
    plan = folder / f"plan-{workers}"
    shutil.rmtree(folder / "cache" / "activations", ignore_errors=True)
    oodscope(folder, "plan", str(path), "-o", str(plan), "--workers", "8")
    processes = [
        oodscope(folder, "work", str(plan), "--share", f"{number}/{workers}", "--kinds", "extract", wait=False)
        for number in range(workers)
    ]
    usage = [os.wait4(process.pid, 0) for process in processes]
    if any(status for _, status, _ in usage):
        raise SystemExit(f"speed: {[each.stderr.read() for each in processes if each.stderr]}")
    ended: dict[int, list[tuple[float, int]]] = {}
    for file in (plan / "done").glob("extract-*.json"):
        record = json.loads(file.read_text())
        ended.setdefault(record["pid"], []).append((file.stat().st_mtime, record["forwarded"]))
    begin = max(min(moment for moment, _ in each) for each in ended.values())
    after = [(moment, count) for each in ended.values() for moment, count in each if moment > begin]
    images, seconds = sum(count for _, count in after), max(moment for moment, _ in after) - begin
    return {"workers": len(ended), "images": images, "seconds": seconds, "rate": images / seconds}


def speed(folder: Path) -> Figures:
    """One worker, then two, on the same 100,000 images."""
    path = synthetic(folder, SYNTHETIC)
    load = os.getloadavg()[0]
    rates = [extraction_rate(folder, path, workers) for workers in (1, 2)]
    return {"one": rates[0], "two": rates[1], "ratio": rates[1]["rate"] / rates[0]["rate"], "load": load}


def overhead(folder: Path, repetitions: int = 5) -> Figures:
    """Processor time of one process: a plan's extraction units, and the plain loop over the same images, in turn."""
    os.environ.update(environment(folder))
    sys.path[:0] = [str(folder)]
    import torch

    from oodscope.activations.store.store import ActivationStore
    from oodscope.execution.work import work
    from oodscope.jobs.run import declared_file
    from oodscope.jobs.units.divided import write_plan
    from oodscope.jobs.units.evaluation import opened
    from oodscope.jobs.units.kinds import do

    torch.set_num_threads(1)
    path = synthetic(folder, 20 * BLOCK)
    plan = write_plan(declared_file(path), folder / "first", workers=2)
    parts = opened(next(unit for unit in plan.units if unit.kind == "extract").spec)
    extraction, sets = parts.extraction, parts.sets()
    times: dict[str, list[float]] = {"loop": [], "units": []}
    for number in range(repetitions + 1):
        for way in ("loop", "units"):
            root = folder / f"{way}-{number}"
            extraction.store = ActivationStore(root)
            made = write_plan(declared_file(path), folder / f"plan-{number}", workers=2) if way == "units" else None
            started = time.process_time()
            if made is None:
                for name, images in sets.items():
                    extraction.extract(images, parts.probes(name))
            else:
                work(made, do, kinds=["extract"])
            times[way].append(time.process_time() - started)
            shutil.rmtree(root, ignore_errors=True)
    loop, units = (np.array(times[way][1:]) for way in ("loop", "units"))
    ratio = units / loop
    return {
        "loop": loop.tolist(),
        "units": units.tolist(),
        "count": len(plan.units),
        "median": float(np.median(ratio)) - 1,
        "least": float(ratio.min()) - 1,
        "most": float(ratio.max()) - 1,
    }


def study(folder: Path) -> Figures:
    """Twenty networks with two workers, each evaluated once; then one that cannot be built among them."""
    import safetensors.torch
    import torch

    import oodscope as oods

    folder.mkdir(parents=True, exist_ok=True)
    classes = len(oods.load_benchmark("glyphs", images_per_class=1).class_names)
    models = []
    for number in range(MODELS):
        torch.manual_seed(number)
        network, _ = oods.create_model("small_cnn", num_classes=classes)
        file = folder / f"net-{number}.safetensors"
        safetensors.torch.save_file(network.state_dict(), file)
        models.append({"architecture": "small_cnn", "name": f"net {number}", "weights": str(file)})
    outcomes: Figures = {}
    for name in ("all", "one fails"):
        if name == "one fails":
            (folder / "net-7.safetensors").write_bytes(b"no weights")
        place = folder / name.replace(" ", "-")
        path = job(place, models=models, detectors=["msp"], protocols=["human_centric"], images_per_class=5)
        declared = json.loads(path.read_text())
        del declared["model"]
        path.write_text(json.dumps(declared))
        process = oodscope(place, "run", str(path), "--workers", "2", wait=False)
        _, errors = process.communicate()
        runs = len(list((place / "out").glob("glyphs-*/run.json")))
        outcomes[name] = {"status": process.returncode, "evaluations": runs, "said": errors.strip()[-300:]}
    return {"models": MODELS, **outcomes}


def tests_of(*words: str) -> Figures:
    """How a choice of tests ended, and their processor time."""
    started = os.times()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:xdist", "-q", "--no-header", *words],
        cwd=HERE,
        env={**os.environ, "OODSCOPE_TEST_TIER": "test", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    ended = os.times()
    seconds = ended.children_user + ended.children_system - started.children_user - started.children_system
    lines = [line for line in done.stdout.splitlines() if " passed" in line or " failed" in line]
    counted = sum(line.count(".") for line in done.stdout.splitlines() if set(line.split("[")[0].strip()) <= set(".F"))
    return {"status": done.returncode, "said": lines[-1] if lines else f"{counted} passed", "seconds": seconds}


def stores(folder: Path) -> Figures:
    """Eight racing writers, a thousand times on a disk and on a simulated S3; 64 processes on one PostgreSQL."""
    return {
        "races": tests_of("-m", "soak", "tests/base/test_remote_place.py"),
        "postgres": tests_of("-m", "", "tests/results/test_result_store.py", "-k", "postgres or processes"),
        "plans": tests_of("-m", "", "tests/execution/test_work.py"),
    }


SOAK = {
    "kills": "tests/jobs/test_units.py::test_three_processes_and_twenty_kills_give_the_numbers_of_one",
    "ray": "tests/execution/test_ray.py::test_a_node_that_is_killed_costs_nothing",
    "ranks": "tests/training/test_ranks.py::test_a_rank_that_is_killed_costs_what_came_after_the_last_checkpoint",
}


def soak(folder: Path) -> Figures:
    """The long forms of tests that kill workers, a node and ranks."""
    return {name: {**tests_of("-m", "soak", test), "test": test} for name, test in SOAK.items()}


def ranks(folder: Path) -> Figures:
    """Two ranks against one process: without batch norm by weights, with synchronised batch norm by accuracy."""
    found: Figures = {"accuracy": {}}
    for count in (1, 2):
        words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "3"]
        words += ["--master-port", str(20_000 + os.getpid() % 20_000), "-m", "oodscope"]
        place = folder / str(count)
        place.mkdir(parents=True)
        started = [sys.executable, "-m", "oodscope"] if count == 1 else words
        asked = [
            "train",
            "--benchmark",
            "glyphs",
            "--images-per-class",
            "100",
            "--model",
            "small_cnn",
            "--device",
            "cpu",
        ]
        asked += ["--set", "epochs=6", "--seeds", "0,1,2", "-o", str(place / "out"), "--json", "-q"]
        done = subprocess.run([*started, *asked], env=environment(folder), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        trained = [json.loads(path.read_text()) for path in (place / "out").glob("cross_entropy-*/run.json")]
        found["accuracy"][str(count)] = accuracies(place / "out")
        assert trained, "a run is written"
    found["tests"] = tests_of("-m", "", "tests/training/test_ranks.py")
    return found


def accuracies(output: Path) -> list[list[int]]:
    """Correct test images and all of them, of each seed's network."""
    import oodscope as oods

    (training,) = [run for run in oods.open_runs(output) if run.kind == "training"]
    return [[int(each.correct or 0), each.n_test] for each in training.networks]


PARTS: dict[str, Callable[[Path], Figures]] = {
    "speed": speed,
    "overhead": overhead,
    "study": study,
    "stores": stores,
    "soak": soak,
    "ranks": ranks,
}


def keep(file: Path, name: str, content: Figures) -> None:
    """Write the figures of one part; others may have been written meanwhile."""
    known: Figures = json.loads(file.read_text()) if file.exists() else {}
    known[name] = {
        "figures": content,
        "command": f"python benchmarks/scale.py {name}",
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "load": round(os.getloadavg()[0], 1),
        "date": datetime.now(UTC).date().isoformat(),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(known, indent=1) + "\n")
    print(f"{name}: {json.dumps(content)[:600]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", help="numbers[:WAY,...], speed, overhead, study, stores, soak, ranks, page")
    parser.add_argument("--results", type=Path, default=HERE / "docs" / "results")
    arguments = parser.parse_args()
    file = arguments.results / "data" / FIGURES
    for part in arguments.parts:
        name, _, ways = part.partition(":")
        if name == "page":
            continue
        known: Figures = json.loads(file.read_text()) if file.exists() else {}
        with tempfile.TemporaryDirectory(prefix="scale-") as folder:
            if name != "numbers":
                keep(file, name, PARTS[name](Path(folder)))
                continue
            chosen = [way.strip() for way in ways.split(",") if way.strip()]
            for content in numbers(Path(folder), chosen, known.get("numbers", {}).get("figures", {})):
                keep(file, name, content)
    write_page(arguments.results)


if __name__ == "__main__":
    main()
