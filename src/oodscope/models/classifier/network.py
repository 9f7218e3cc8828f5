"""One pass through any network: whatever it returns becomes one checked ``[N, K]`` tensor."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from oodscope.base.errors import ModelError, UsageError


def choose_device(wanted: str | torch.device) -> torch.device:
    """The device called ``wanted``; ``"auto"`` is CUDA if there is one, else MPS, else the CPU.

    A device that this machine lacks is refused here, not minutes later in the middle of a run.
    """
    names = "use 'auto', 'cpu', 'cuda', 'cuda:1', 'mps' or 'xpu'"
    if wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        raise UsageError(f"unknown device {wanted!r}: {names}") from error
    if device.type not in ("cpu", "cuda", "mps", "xpu") or (device.type in ("cpu", "mps") and device.index):
        raise UsageError(f"unknown device {wanted!r}: {names}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ModelError(
            f"device {str(device)!r} is not there: torch sees {torch.cuda.device_count()} CUDA devices. "
            "Use device='auto', or install a CUDA build of torch and check `nvidia-smi`"
        )
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ModelError("device 'mps' is not there: it needs a Mac with Apple silicon. Use device='auto'")
    if device.type == "xpu" and (device.index or 0) >= torch.xpu.device_count():
        raise ModelError(
            f"device {str(device)!r} is not there: torch sees {torch.xpu.device_count()} XPU devices. Use device='auto'"
        )
    return device


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the block; afterwards every module is in the mode it was in."""
    training = [module for module in model.modules() if module.training]
    if training:
        model.eval()
    try:
        yield
    finally:
        for module in training:
            # not module.train(), which would also switch children that were frozen in evaluation mode
            module.training = True


@contextmanager
def weights_at_rest(model: nn.Module) -> Iterator[None]:
    """No gradient reaches the weights from graphs recorded inside the block.

    A later ``backward()`` then costs only the path to the input, and leaves no ``.grad`` behind.
    """
    moving = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in moving:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in moving:
            parameter.requires_grad_(True)


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Products at full precision inside the block, and equal products when asked again.

    On CUDA, convolutions use TF32 by default, whose eleven bits would hide whether a 1x1 convolution
    really yields the logits; so would autocast on any device. Without TF32, cuDNN may choose a transposed
    convolution that sums in another order each time, and a scorer would look random that is not.
    """
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.autocast(device.type, enabled=False), _convolutions(allow_tf32=False):
            yield
    finally:
        torch.set_float32_matmul_precision(precision)


def _convolutions(*, allow_tf32: bool) -> AbstractContextManager[None]:
    """Deterministic kernels of a stated precision; whether cuDNN tries them first is the user's (``tried_kernels``)."""
    cudnn = torch.backends.cudnn
    flags: AbstractContextManager[None] = cudnn.flags(
        enabled=True,
        benchmark=cudnn.benchmark,
        benchmark_limit=cudnn.benchmark_limit,
        deterministic=True,
        allow_tf32=allow_tf32,
    )
    return flags


@contextmanager
def tried_kernels(*, worthwhile: bool) -> Iterator[None]:
    """Inside the block cuDNN may try its kernels for a shape, if the user lets it and the shape is ``worthwhile``.

    ``torch.backends.cudnn.benchmark = True`` is PyTorch's own switch for that, off unless somebody sets it. In true
    float32 cuDNN's guess is far off: on an H200 a ResNet-18 at 32 pixels passes 21,200 images/s by the guess and 30,900
    by the fastest kernel. Trying costs up to a second per shape of a batch, so a shape that comes seldom goes by the
    guess. Every kernel keeps the stated precision and sums in one order at every call; but which one is fastest may
    differ from process to process, and with it the last bits. Digits that depend on nobody's clock are worth more than
    speed to most, so the switch is left as the user has it.
    """
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = before and worthwhile
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


Precision = Literal["float32", "tf32", "bf16"]
"""Of products in a forward pass: full, NVIDIA's eleven-bit form of float32, or autocast to bfloat16."""


@contextmanager
def at_precision(device: torch.device, precision: Precision) -> Iterator[None]:
    """Products at a stated precision inside the block; a processor has no TF32, so there it is float32."""
    if precision == "bf16":
        with torch.autocast(device.type, dtype=torch.bfloat16):
            yield
    elif device.type != "cuda":
        yield
    elif precision == "float32":
        with full_precision(device):
            yield
    else:
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            with _convolutions(allow_tf32=True):
                yield
        finally:
            torch.set_float32_matmul_precision(before)


def memory_layout(device: torch.device, precision: Precision) -> torch.memory_format:
    """How weights and batches lie in memory, a function of device and precision alone, so that digits are one too.

    Tensor cores read channels last (an H200 passes 135,000 images/s through a ResNet-18 in TF32, in planes 82,000).
    They do not compute in full float32, and the kernels that do are a little faster in planes (30,900 against 30,100,
    with ODIN's gradient 9,200 against 8,400, both by tried kernels). Other devices take batches as they come. Recorded
    graphs change a few hundredths (``docs/results/speed.md``) and are left out.
    """
    if device.type != "cuda":
        return torch.preserve_format
    return torch.contiguous_format if precision == "float32" else torch.channels_last


class Outputs(NamedTuple):
    """What one pass yields: ``logits [N, C]`` and, if the head is known, ``features [N, D]``; float32."""

    logits: Tensor
    features: Tensor | None


class NetworkError(ModelError):
    """The network itself could not digest a batch."""


def run_network(model: nn.Module, batch: Tensor) -> Tensor:
    """The logits (or features, for a network without head) of one batch, checked for shape."""
    try:
        returned = model(batch.to(input_dtype(model)))
    except torch.OutOfMemoryError:
        raise  # callers answer it with a smaller batch
    except Exception as error:
        problem = f"{type(model).__name__} fails on a batch of shape {list(batch.shape)}"
        raise NetworkError(f"{problem}: {first_line(error)}") from error
    return _checked(returned_tensor(returned), batch.shape[0])


def input_dtype(model: nn.Module) -> torch.dtype:
    """The floating type of the weights, so that a half-precision network gets half-precision images."""
    return next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)


def first_line(error: Exception) -> str:
    """What third-party code complains of, short enough for a line of our own."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def returned_tensor(returned: Any) -> Tensor:
    """A tensor, ``{"logits": ...}``, an object with ``.logits``, or a tuple that begins with the logits."""
    if isinstance(returned, Mapping):
        if "logits" not in returned:
            keys = ", ".join(sorted(map(repr, returned)))
            raise ModelError(f"the network returns a dict without 'logits'; its keys are {keys}")
        returned = returned["logits"]
    elif hasattr(returned, "logits"):
        returned = returned.logits
    elif isinstance(returned, (tuple, list)) and returned:
        returned = returned[0]
    if not isinstance(returned, Tensor):
        raise ModelError(
            f"the network returns a {type(returned).__name__}; needed: a tensor of logits, a dict or object "
            "with 'logits', or a tuple that begins with them"
        )
    return returned


def _checked(logits: Tensor, rows: int) -> Tensor:
    if logits.ndim != 2 or logits.shape[0] != rows:
        shape = list(logits.shape)
        raise ModelError(f"the network turns {rows} images into shape {shape}; needed: [{rows}, classes]")
    if logits.shape[1] < 2:
        raise ModelError("the network has one class only: a classifier needs two logits or more")
    return logits
