"""Ranks that share a training: the data of one process, its gradients, and its way back after a kill."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import safetensors.torch
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from oodscope.base.errors import UsageError
from oodscope.execution.ranks import Ranks
from oodscope.training.loop.pixels import Streamed
from oodscope.training.loop.shared import SharedPixels, check_shared, own_part, synchronised
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.fine_tune import FineTune
from oodscope.training.methods.logitnorm import LogitNorm
from oodscope.training.methods.mixup import Mixup
from oodscope.training.methods.outlier_exposure import OutlierExposure
from oodscope.training.recipe import Batch
from tests.training.shared_training import IMAGES, as_srun, as_torchrun, free_port, train_shared
from tests.training.training_toys import PREPROCESS, colours, weights


@given(st.integers(0, 60), st.integers(1, 9))
def test_every_row_is_of_exactly_one_rank_and_shares_are_nearly_equal(length, count):
    shares = [Ranks(number, count).share(length) for number in range(count)]
    assert [row for share in shares for row in range(length)[share]] == list(range(length))
    sizes = [share.stop - share.start for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_torchrun_and_srun_are_understood_and_a_batch_script_is_not_a_rank():
    assert Ranks.here({}) == Ranks() and Ranks().alone and Ranks().first
    assert Ranks.here(as_torchrun(1, 2, 1)) == Ranks(1, 2, 1, 2)
    assert Ranks.here(as_srun(3, 8, 1)) == Ranks(3, 8, 3, 8)
    two = as_srun(5, 8, 1) | {"SLURM_NTASKS_PER_NODE": "4", "SLURM_LOCALID": "1"}
    assert Ranks.here(two) == Ranks(5, 8, 1, 4) and Ranks.here(two).nodes == 2
    script = {name: value for name, value in as_srun(0, 8, 1).items() if name != "SLURM_STEP_NUM_TASKS"}
    assert Ranks.here(script).alone
    with pytest.raises(UsageError, match="RANK"):
        Ranks.here({"TORCHELASTIC_RUN_ID": "x", "RANK": "none"})


@pytest.mark.parametrize("weighted", [False, True])
def test_shares_of_a_batch_average_to_the_whole(weighted):
    rows = torch.arange(7)
    drawn = torch.rand(7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    batch = Batch(torch.cat([rows, rows + 10]).double(), rows, rows, weights=drawn if weighted else None)
    parts = [own_part(batch, Ranks(number, 3)) for number in range(3)]
    assert torch.equal(torch.cat([part.labels for part, _ in parts]), rows)
    assert [len(part.images) for part, _ in parts] == [6, 4, 4], "both views of each image"

    def mean(part):
        counted = torch.ones(len(part.labels)).double() if part.weights is None else part.weights
        return (counted * part.labels).sum() / counted.sum()

    assert sum(weight * mean(part) for part, weight in parts) / 3 == pytest.approx(float(mean(batch)))


def test_only_losses_that_are_means_over_images_are_shared():
    ranks = Ranks(0, 4)
    for recipe in (CrossEntropy(), LogitNorm(), FineTune()):
        check_shared(recipe, 8, ranks)
    for recipe in (Mixup(), OutlierExposure()):
        with pytest.raises(UsageError, match="cannot share a batch"):
            check_shared(recipe, 8, ranks)
    with pytest.raises(UsageError, match="batches of 3 images"):
        check_shared(CrossEntropy(), 3, ranks)


def as_rank(number, variables, target, arguments, queue):
    """What a process of ``run_ranks`` does."""
    os.environ.update(variables)
    torch.set_num_threads(1)
    try:
        queue.put((number, target(*arguments)))
    except Exception as error:
        queue.put((number, error))


def run_ranks(count, target, *arguments, variables=as_torchrun):
    """A function in so many processes, each with the variables of a rank; what they return, in order.

    They are forked by a server that imported torch and has not used it: a process in which earlier tests took
    gradients cannot be forked.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    port, queue = free_port(), context.Queue()
    processes = [
        context.Process(target=as_rank, args=(number, variables(number, count, port), target, arguments, queue))
        for number in range(count)
    ]
    for process in processes:
        process.start()
    answers = {}
    while len(answers) < count and not any(isinstance(each, Exception) for each in answers.values()):
        answers |= [queue.get(timeout=300)]
    for process in processes:
        process.join(60 if len(answers) == count else 0)
        process.kill()
    assert not [each for each in answers.values() if isinstance(each, Exception)], answers
    return [answers[number] for number in range(count)]


def norms_and_pixels():
    """Batch norm of an odd batch, with the gradient of its input and its memory; pixels that ranks decode."""
    ranks = Ranks.here()
    store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), ranks.count, is_master=ranks.first)
    dist.init_process_group("gloo", store=store, rank=ranks.number, world_size=ranks.count)
    draws = torch.Generator().manual_seed(0)
    whole = torch.randn(7, 3, 4, 4, generator=draws) * 5 + 100
    factors = torch.randn(whole.shape, generator=draws)
    norm = nn.BatchNorm2d(3)
    rows = ranks.share(7)
    own = whole[rows].clone().requires_grad_()
    given = synchronised(norm, own)
    (given * factors[rows]).sum().backward()
    streamed = SharedPixels(Streamed(colours(9), PREPROCESS), ranks, torch.device("cpu"))
    (pixels,) = streamed.batches([torch.arange(9).numpy()])
    answer = [given.detach(), own.grad, norm.running_mean, norm.running_var, pixels]
    dist.destroy_process_group()
    return [each.numpy() for each in answer]


@pytest.mark.slow
def test_synchronised_norms_and_pixels_are_those_of_one_process():
    answers = run_ranks(2, norms_and_pixels)
    outputs, gradients = (torch.cat([torch.from_numpy(each[place]) for each in answers]) for place in (0, 1))
    draws = torch.Generator().manual_seed(0)
    whole = (torch.randn(7, 3, 4, 4, generator=draws) * 5 + 100).double().requires_grad_()
    factors = torch.randn(whole.shape, generator=draws)
    norm = nn.BatchNorm2d(3).double()
    (expected := norm(whole)).backward(factors.double())
    assert torch.allclose(outputs.double(), expected, atol=2e-5)
    assert torch.allclose(gradients.double(), whole.grad, atol=2e-5)
    for answer in answers:
        assert torch.allclose(torch.from_numpy(answer[2]).double(), norm.running_mean, atol=1e-5)
        assert torch.allclose(torch.from_numpy(answer[3]).double(), norm.running_var, atol=1e-4)
        assert torch.equal(torch.from_numpy(answer[4]), Streamed(colours(9), PREPROCESS).read(torch.arange(9).numpy()))


def several_trainings(folder):
    """Trainings one after the other by the same ranks; the largest difference of the ranks' weights."""
    plain = train_shared(folder / "plain")
    train_shared(folder / "norm", "norm")
    again = train_shared(folder / "plain")
    assert [epoch.loss for epoch in again.history] == [epoch.loss for epoch in plain.history]
    return [value.numpy() for value in plain.model.state_dict().values()]


def far(one: Path, other: Path) -> float:
    ours, theirs = (safetensors.torch.load(weights(folder)) for folder in (one, other))
    assert ours.keys() == theirs.keys()
    return max(float((ours[name].double() - theirs[name].double()).abs().max()) for name in ours)


def history(folder):
    return json.loads((folder / "training.json").read_text())["history"]


@pytest.mark.slow
def test_two_ranks_give_the_network_of_one_process(tmp_path):
    assert IMAGES % 2, "shares that are not equal are part of the claim"
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    for network in ("plain", "norm"):
        train_shared(alone / network, network, ranks=False)
    ranks = run_ranks(2, several_trainings, shared)
    assert all((ours == theirs).all() for ours, theirs in zip(*ranks)), "all ranks hold the same weights"
    for network in ("plain", "norm"):
        assert far(alone / network, shared / network) <= 1e-5
        for ours, theirs in zip(history(alone / network), history(shared / network)):
            assert ours["train_accuracy"] == theirs["train_accuracy"] and ours["val_accuracy"] == theirs["val_accuracy"]
            assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
    identities = [json.loads((home / "norm" / "training.json").read_text())["identity"] for home in (alone, shared)]
    assert identities[0] == identities[1], "how many ranks there were is no part of what was trained"


@pytest.mark.soak
def test_tasks_of_srun_give_the_network_of_one_process(tmp_path):
    train_shared(tmp_path / "alone", "norm", ranks=False)
    run_ranks(3, several_trainings, tmp_path, variables=as_srun)
    assert far(tmp_path / "alone", tmp_path / "norm") <= 1e-5


def local_norms(folder):
    train_shared(folder, "norm", sync_batchnorm=False)
    return 0


@pytest.mark.soak
def test_norms_of_each_rank_make_another_training(tmp_path):
    train_shared(tmp_path / "alone", "norm", ranks=False)
    run_ranks(2, local_norms, tmp_path / "shared")
    assert far(tmp_path / "alone", tmp_path / "shared") > 1e-3
    assert json.loads((tmp_path / "shared" / "training.json").read_text())["identity"]["ranks"] == 2


def torchrun(folder, epochs, pause, restarts=0):
    """The training of ``shared_training`` by two ranks that torchrun starts, and starts again."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", str(restarts)]
    command += ["--master-port", str(free_port()), "--monitor-interval", "0.1", "-m", "tests.training.shared_training"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, str(folder), str(epochs), str(pause)],
        env=environment,
        cwd=Path(__file__).parents[2],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines(path):
    return path.read_text().split("\n")[:-1] if path.exists() else []


@pytest.mark.soak
@pytest.mark.parametrize("kills", [1, 3])
def test_a_rank_that_is_killed_costs_what_came_after_the_last_checkpoint(tmp_path, kills):
    whole = torchrun(tmp_path / "whole", 12, 0.0, restarts=2)
    assert whole.wait(600) == 0, whole.stderr.read()
    # on a busy machine ranks may fail to find each other in time, and torchrun tries once more
    running = torchrun(tmp_path / "killed", 12, 0.05, restarts=kills + 3)
    diary, killed, until = tmp_path / "killed" / "diary", set(), time.monotonic() + 900
    while len(killed) < kills:
        assert time.monotonic() < until and running.poll() is None, running.stderr.read()
        attempt = max((int(path.stem.partition("-")[0]) for path in diary.glob("*-1.txt")), default=0)
        if attempt not in killed and len(lines(diary / f"{attempt}-0.txt")) > 12:
            killed.add(attempt)
            os.kill(json.loads(lines(diary / f"{attempt}-1.txt")[0])["pid"], signal.SIGKILL)
        time.sleep(0.02)
    assert running.wait(600) == 0, running.stderr.read()
    starts = [int(lines(path)[1]) for path in sorted(diary.glob("*-0.txt")) if len(lines(path)) > 1]
    assert len(starts) == kills + 1 and starts[0] == 0 and starts == sorted(starts) and starts[1] > 0
    assert weights(tmp_path / "killed" / "training") == weights(tmp_path / "whole" / "training")
