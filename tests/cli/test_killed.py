"""Killed at random moments, the demo ends with the numbers of an uninterrupted run."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

import oodscope as oods

FEW = ["--no-attack", "--no-training", "--images-per-class", "20", "--epochs", "4"]
COMMAND = [sys.executable, "-m", "oodscope", "demo", *FEW]


def start(folder):
    environment = {**os.environ, "OODSCOPE_CACHE": str(folder / "cache")}
    command = [*COMMAND, "--output", str(folder / "out")]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(folder):
    process = start(folder)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    runs = sorted((folder / "out").glob("*/run.json"), key=lambda path: path.stat().st_mtime)
    return oods.Result.load(runs[-1].parent), errors


def stored_shards(folder):
    """The shards of every stored column: each holds the rows of one stretch of a set."""
    return {shard.relative_to(folder) for shard in folder.rglob("shard-*")}


@pytest.mark.parametrize("kills", [pytest.param(1, marks=pytest.mark.slow), pytest.param(10, marks=pytest.mark.soak)])
def test_kills_change_nothing(tmp_path, kills):
    started = time.perf_counter()
    expected, _ = finish(tmp_path / "undisturbed")
    whole = time.perf_counter() - started
    chance = random.Random(0)
    disturbed = tmp_path / "disturbed"
    killed = 0
    for _ in range(25):
        process = start(disturbed)
        try:
            process.communicate(timeout=chance.uniform(0.1, 0.8) * whole)
            whole *= 0.8  # less was left to do, or the machine has less to do besides: be quicker
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            killed += 1
        if killed == kills:
            break
    assert killed == kills
    result, _ = finish(disturbed)
    assert result.scores.frame.equals(expected.scores.frame)
    columns = ["protocol", "detector", "set", "group", "metric", "value", "low", "high"]
    assert result.to_dataframe()[columns].equals(expected.to_dataframe()[columns])
    # every stretch of every column was stored exactly once, as in the undisturbed run
    assert stored_shards(disturbed / "cache") == stored_shards(tmp_path / "undisturbed" / "cache") != set()


@pytest.mark.slow
def test_a_second_run_extracts_and_trains_nothing(tmp_path):
    finish(tmp_path)
    _, errors = finish(tmp_path)
    assert "extract" not in errors
    assert "train " not in errors
    assert "draw" not in errors
