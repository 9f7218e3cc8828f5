"""The evaluation that everybody does, in every way there is to divide it, and digests of what comes out."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tests.execution import simulated_slurm
from tests.jobs.project import job

HERE = Path(__file__).parents[1]
KILLS = 20
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
            sha256(values.tobytes()).hexdigest()[:16],
            f"{pd.util.hash_pandas_object(rows, index=False).sum():016x}",
        ],
        "forwarded": int(result.record.forward_images or 0),
    }


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


def slurm(folder: Path) -> Figures:
    """``--on slurm`` with an ``sbatch`` that runs an array of eight here; two tasks are preempted by SIGTERM."""
    path, before = job(folder), dict(os.environ)
    os.environ.update(simulated_slurm.install(folder, preempted=(0, 2)))
    try:
        oodscope(folder, "run", str(path), "--on", "slurm", "--workers", "8")
    finally:
        os.environ.clear()
        os.environ.update(before)
    statuses = [status for _, status in simulated_slurm.ended(folder)]
    return {**digests(folder / "out"), "tasks": len(statuses), "preempted": statuses.count("143")}


def state() -> str:
    """What digits may depend on beside who did the work: only ways of one state are compared."""
    return ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", "scipy", "scikit-learn", "pillow"))


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
        known = {**known, way: {**WAYS[way](folder / way.replace(" ", "-")), "state": state()}}
        print(f"numbers: {way}: {known[way]['digest']} in {time.monotonic() - started:.0f} s", flush=True)
        yield known
