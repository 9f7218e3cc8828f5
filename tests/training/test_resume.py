"""A training that was killed, damaged or repeated ends with the same bytes."""

import json
import logging
import multiprocessing
import pickle
import random
import time
import zlib
from pathlib import Path

import pytest
import torch

import oodscope.training.loop.lockstep as lockstep
import oodscope.training.train as trained
from oodscope.base.errors import StorageError
from oodscope.training.train import train
from tests.training.training_toys import (
    PREPROCESS,
    RECIPE,
    Listener,
    StoppedError,
    TinyNet,
    colours,
    same_weights,
    stop_at,
    train_slowly,
    weights,
)

STEPS = 6  # per epoch: 96 images in batches of 16


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """A checkpoint after every step."""
    monkeypatch.setattr(lockstep, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "SAVING_SHARE", float("inf"))


def run(folder: Path, recipe=RECIPE, progress=None):
    return train(TinyNet, recipe, colours(), PREPROCESS, folder=folder, device="cpu", progress=progress or Listener())


def interrupted(folder: Path, step: int, recipe=RECIPE) -> list[Path]:
    with pytest.raises(StoppedError):
        run(folder, recipe, stop_at(step))
    return sorted(folder.glob("checkpoint-*.pt"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> bytes:
    folder = tmp_path_factory.mktemp("undisturbed")
    run(folder)
    return weights(folder)


@pytest.mark.parametrize("kills", [pytest.param(1, marks=pytest.mark.slow), pytest.param(10, marks=pytest.mark.soak)])
def test_killed_at_random_moments_and_resumed_is_byte_equal(tmp_path, kills):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lightning_fabric", "oodscope.training"])

    def start(name: str, diary: Path):
        child = context.Process(target=train_slowly, args=(tmp_path / name, diary))
        child.start()
        return child

    whole = start("whole", tmp_path / "whole.txt")
    whole.join(120)
    assert whole.exitcode == 0

    moments = random.Random(0)
    starts = []
    for kill in range(kills):
        diary = tmp_path / f"{kill}.txt"
        child = start("killed", diary)
        while not diary.exists() or not diary.read_text().endswith("\n"):
            time.sleep(0.005)
        time.sleep(moments.uniform(0.1, 0.5) * min(1, 4 / kills))  # in all, less than the training takes
        child.kill()
        child.join()
        assert child.exitcode == -9
        starts.append(int(diary.read_text().split()[0]))
    last = start("killed", tmp_path / "last.txt")
    last.join(120)
    starts.append(int((tmp_path / "last.txt").read_text().split()[0]))

    assert starts[0] == 0 and starts == sorted(starts) and starts[-1] > 0
    assert any(begin % 20 for begin in starts), "no resumption in the middle of an epoch was tried"
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    assert lines_of(tmp_path / "killed") == lines_of(tmp_path / "whole")
    assert sorted(path.name for path in (tmp_path / "killed").iterdir()) == ["model.safetensors", "training.json"]


def lines_of(folder: Path) -> list[dict]:
    history = json.loads((folder / "training.json").read_text())["history"]
    return [{key: value for key, value in epoch.items() if key != "seconds"} for epoch in history]


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, STEPS - 1, STEPS, STEPS + 1, 3 * STEPS])
def test_stopped_anywhere_and_resumed_is_byte_equal(tmp_path, undisturbed, step):
    interrupted(tmp_path, step)
    listener = Listener()
    run(tmp_path, progress=listener)
    assert weights(tmp_path) == undisturbed
    assert listener.calls[0] == step - 1, "the step whose report was interrupted is the only one lost"
    assert sum(listener.calls) == listener.total == 3 * STEPS


def test_second_call_reads_the_result_from_disk(tmp_path, monkeypatch):
    first = run(tmp_path)
    monkeypatch.setattr(trained, "Loop", None)
    second = run(tmp_path)
    assert same_weights(first.model, second.model)
    assert second.history == first.history
    assert not second.model.training and not first.model.training
    batch = torch.randn(4, 3, 12, 12)
    assert torch.equal(first.model(batch), second.model(batch))


def damage(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "torn":
        content = content[: len(content) // 2]
    elif how == "empty":
        content = bytearray()
    elif how == "one bit":
        content[len(content) // 2] ^= 1
    elif how == "hostile":
        payload = pickle.dumps(Bomb(path.with_name("exploded")), protocol=2)
        content = bytearray(zlib.crc32(payload).to_bytes(4, "little") + payload)
    path.write_bytes(content)


class Bomb:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return Path.touch, (self.target,)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["torn", "empty", "one bit", "hostile"])
@pytest.mark.parametrize("both", [False, True], ids=["latest", "both"])
def test_damaged_checkpoints_are_passed_over(tmp_path, undisturbed, caplog, how, both):
    checkpoints = interrupted(tmp_path, 10)
    assert [path.name.endswith(".previous.pt") for path in checkpoints] == [True, False]
    for path in checkpoints if both else checkpoints[1:]:
        damage(path, how)
    listener = Listener()
    run(tmp_path, progress=listener)
    assert listener.calls[0] == (0 if both else 8)
    assert weights(tmp_path) == undisturbed
    assert sum("damaged" in record.message for record in caplog.records) == 1 + both
    assert not (tmp_path / "exploded").exists()


def test_checkpoint_of_another_recipe_is_neither_resumed_nor_touched(tmp_path, caplog):
    other = RECIPE.model_copy(update={"learning_rate": 0.01})
    theirs = {path: path.read_bytes() for path in interrupted(tmp_path, 10, other)}
    listener = Listener()
    run(tmp_path, progress=listener)
    assert listener.calls[0] == 0
    assert "other settings" in caplog.text
    assert {path: path.read_bytes() for path in theirs} == theirs


@pytest.mark.parametrize(
    ("change", "named"),
    [({"epochs": 4}, "epochs was 3 and is now 4"), ({"seed": 1}, "seed was 0 and is now 1")],
)
def test_finished_training_is_not_overwritten_by_another(tmp_path, undisturbed, change, named):
    run(tmp_path)
    with pytest.raises(StorageError, match=named):
        run(tmp_path, RECIPE.model_copy(update=change))
    assert weights(tmp_path) == undisturbed


def test_other_data_or_initial_weights_are_another_training(tmp_path):
    run(tmp_path)
    with pytest.raises(StorageError, match="other training images"):
        train(TinyNet, RECIPE, colours(seed=5), PREPROCESS, folder=tmp_path, device="cpu")
    with pytest.raises(StorageError, match="other initial weights"):
        train(TinyNet(), RECIPE, colours(), PREPROCESS, folder=tmp_path, device="cpu")
    with pytest.raises(StorageError, match="other network"):
        train(lambda: TinyNet(4), RECIPE, colours(), PREPROCESS, folder=tmp_path, device="cpu")


def test_damaged_or_half_written_result_is_trained_anew(tmp_path, undisturbed, caplog):
    run(tmp_path)
    damage(tmp_path / "model.safetensors", "one bit")
    run(tmp_path)
    assert weights(tmp_path) == undisturbed
    assert "damaged" in caplog.text
    (tmp_path / "training.json").unlink()
    run(tmp_path)
    assert weights(tmp_path) == undisturbed and (tmp_path / "training.json").exists()


def test_description_tells_the_whole_story(tmp_path):
    result = run(tmp_path)
    described = json.loads((tmp_path / "training.json").read_text())
    recipe = described["identity"]["recipe"]
    assert recipe.pop("method") == "CrossEntropy"
    assert type(RECIPE).model_validate(recipe) == RECIPE
    assert [epoch.model_dump() for epoch in result.history] == described["history"]
    assert {"torch", "python", "oodscope", "lightning-fabric"} <= described["versions"].keys()


def test_foreign_description_is_one_line(tmp_path):
    (tmp_path / "training.json").write_text("[1, 2]")
    with pytest.raises(StorageError, match="not a description of a training"):
        run(tmp_path)


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train(TinyNet, RECIPE, colours(), PREPROCESS, device="cpu")
    assert not list(tmp_path.iterdir())


def test_lightning_keeps_quiet(caplog, capfd):
    caplog.set_level(logging.INFO)
    train(TinyNet, RECIPE.model_copy(update={"precision": "bf16-mixed"}), colours(), PREPROCESS, device="cpu")
    assert not caplog.records
    assert capfd.readouterr() == ("", "")
