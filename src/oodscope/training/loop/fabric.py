"""Lightning Fabric, on one device or on one of several ranks, without chatter."""

import atexit
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from oodscope.base.errors import ModelError
from oodscope.execution.ranks import Ranks
from oodscope.models.classifier.network import choose_device
from oodscope.training.recipe import Precision

if TYPE_CHECKING:
    from lightning_fabric import Fabric

ALONE = Ranks()
"""One process, whoever started it."""


def resolve_device(device: str, precision: Precision, ranks: Ranks = ALONE) -> torch.device:
    """The device called ``device``, with its number, or one line that says why it cannot be used so."""
    chosen = choose_device(device)
    if not ranks.alone and chosen.type == "cuda":
        if ":" in device or torch.cuda.device_count() < ranks.per_node:
            raise ModelError(
                f"{ranks.per_node} ranks of this machine need as many GPUs that each of them sees, and there are "
                f"{torch.cuda.device_count()}; start as many ranks as GPUs, with device 'cuda'"
            )
        chosen = torch.device("cuda", ranks.local)
    if not ranks.alone and chosen.type == "mps":
        raise ModelError("ranks cannot share a training on mps; use one process, or device 'cpu'")
    if precision == "16-mixed" and chosen.type == "cpu":
        raise ModelError("precision '16-mixed' needs a GPU. Use bf16-mixed or 32-true on the CPU")
    return torch.device("cuda", chosen.index or 0) if chosen.type == "cuda" else chosen


def open_fabric(device: torch.device, precision: Precision, ranks: Ranks = ALONE) -> "Fabric":
    """Fabric for one device, or for this one of several ranks. It is imported here, because that takes seconds."""
    with quiet():
        from lightning_fabric import Fabric
        from lightning_fabric.plugins.environments.lightning import LightningEnvironment
        from lightning_fabric.strategies.ddp import DDPStrategy

        plain = "32-true" if precision == "tf32" else precision
        if ranks.alone:
            devices = 1 if device.index is None else [device.index]
            # variables of a Slurm job that this process is one of many of say nothing about this training
            return Fabric(accelerator=device.type, devices=devices, precision=plain, plugins=LightningEnvironment())
        _meet(device, ranks)
        fabric = Fabric(
            accelerator=device.type,
            devices=ranks.per_node,
            num_nodes=ranks.nodes,
            precision=plain,
            strategy=DDPStrategy(),
        )
        fabric.launch()
        return fabric


def _meet(device: torch.device, ranks: Ranks) -> None:
    """Connect the ranks that torchrun started.

    Ranks find each other by addresses in a store that may outlive them: where torchrun starts all again after one died,
    those of the dead are still there. So each start has names of its own.
    """
    import torch.distributed as dist

    if dist.is_initialized() or "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    served = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True)
    store = dist.TCPStore(  # type: ignore[attr-defined]
        host, port, ranks.count, is_master=ranks.first and not served
    )
    started = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    named = dist.PrefixStore(f"start-{started}", store)  # type: ignore[attr-defined]
    if device.type == "cuda":
        torch.cuda.set_device(device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=named, rank=ranks.number, world_size=ranks.count)
    atexit.register(_part)


def _part() -> None:
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


@contextmanager
def arithmetic(device: torch.device, precision: Precision) -> Iterator[None]:
    """How a GPU does the products of a training: by the fastest algorithms, with rounded factors if allowed."""
    if device.type != "cuda":
        yield
        return
    rounded = precision != "32-true"
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if rounded else "highest")
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False, allow_tf32=rounded):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def quiet() -> Iterator[None]:
    """Fabric announces its precision and advises on hardware; neither belongs into a progress bar."""
    disabled = logging.root.manager.disable
    logging.disable(max(disabled, logging.INFO))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
