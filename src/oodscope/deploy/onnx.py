"""Classifier and detector as one ONNX graph, checked against torch before it is handed over."""

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from oodscope.base.errors import DetectorError
from oodscope.base.files import atomic_path
from oodscope.data.images.given import Given, GivenImages
from oodscope.deploy.scorer import Scorer
from oodscope.models.classifier.network import first_line
from oodscope.models.classifier.noise import noise_images

TOLERANCE = 1e-4
"""Largest difference from torch, of the largest logit or score, with which a graph is handed over."""
OUTPUTS = ("logits", "score", "accepted")


def export_onnx(scorer: Scorer, path: Path | str, images: GivenImages | None = None) -> dict[str, float]:
    """Write the scorer as an ONNX graph; how far it is from torch on ``noise`` and ``images``, relatively.

    The graph takes ``images``, float32 ``[N, C, H, W]`` of pixels in [0, 1] that have the network's input size, for any
    N, and gives ``logits``, ``score`` (float64, larger = more OOD) and ``accepted`` (true without a calibration).
    Resizing pictures stays with the caller.

    Parameters
    ----------
    images : real images to check the graph on, beside noise.

    Examples
    --------
    >>> deviation = oods.export_onnx(scorer, folder / "scorer.onnx")
    >>> max(deviation.values()) < 1e-3
    True
    """
    _refuse_passes(scorer)
    runtime = onnx_runtime()
    size = scorer.pixels.size
    noise = torch.from_numpy(np.stack(noise_images(max(size), len(scorer.pixels.scale)))).permute(0, 3, 1, 2)
    batches = {"noise": (noise.float() / 255)[:, :, : size[0], : size[1]]}
    if images is not None:
        batches["images"] = _pixels_of(scorer, images)
    content = draw(ScorerGraph(scorer), batches["noise"].to(scorer.device), OUTPUTS, scorer.detector.name)
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    if isinstance(session.get_inputs()[0].shape[0], int):
        # where the code asks how many images there are, the exporter quietly draws the example's number
        raise DetectorError(f"{scorer.detector.name}: cannot be drawn as one graph for any number of images")
    found = {name: _deviation(session, scorer, batch) for name, batch in batches.items()}
    if (worst := max(found.values())) > TOLERANCE:
        raise DetectorError(
            f"{scorer.detector.name}: the ONNX graph differs from torch by {worst:.1g} of the largest score or "
            f"logit, more than {TOLERANCE:g}"
        )
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)
    return found


class ScorerGraph(nn.Module):
    """A scorer as a module: pixels in, ``OUTPUTS`` out."""

    def __init__(self, scorer: Scorer) -> None:
        super().__init__()
        self.network = scorer.classifier.model
        self.scorer = scorer
        self.pixels = scorer.pixels  # found here, for finding it is not part of the graph
        self.threshold = torch.inf if scorer.calibration is None else scorer.calibration.threshold

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits, scores = self.scorer.judge(self.pixels(images))
        return logits, scores, scores <= self.threshold


def draw(graph: nn.Module, example: Tensor, outputs: Sequence[str], name: str) -> bytes:
    """A module as ONNX, for any number of images; ``name`` is whose fault it is if that fails."""
    stream = io.BytesIO()
    try:
        with torch.no_grad(), _quiet():
            program: Any = torch.onnx.export(
                graph.eval(),
                (example,),
                dynamo=True,
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                input_names=["images"],
                output_names=list(outputs),
                verbose=False,
            )
            program.save(stream)
    except Exception as error:  # the exporter raises its own, torch.export's and the tracer's errors
        raise DetectorError(f"{name}: cannot be drawn as one graph for all images ({_root(error)})") from error
    return stream.getvalue()


def _root(error: BaseException) -> str:
    """What the innermost of chained errors says, short enough for a line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return first_line(Exception(str(error)))[:160]


def _refuse_passes(scorer: Scorer) -> None:
    for probe in scorer.detector.probes:
        if not probe.differentiable:
            raise DetectorError(
                f"{scorer.detector.name}: cannot be exported: it makes passes of its own "
                f"({probe.column.split('(')[0]}), and an ONNX graph is one pass forwards"
            )


def onnx_runtime() -> Any:
    """The module that runs graphs; refused in one line where the extra ``onnx`` is missing."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise DetectorError(f"export needs {error.name}: pip install 'oodscope[onnx]'") from error
    return onnxruntime


def _pixels_of(scorer: Scorer, images: GivenImages) -> Tensor:
    """Real images as the graph takes them: prepared by the classifier, then back to pixels."""
    given = Given(images)
    prepared = scorer.classifier.prepare(given.read(range(min(len(given), 64)))).to(scorer.device)
    return ((prepared - scorer.pixels.offset) / scorer.pixels.scale).cpu()


def _deviation(session: Any, scorer: Scorer, batch: Tensor) -> float:
    """The largest difference, of the largest logit or score."""
    theirs = dict(zip(OUTPUTS, session.run(list(OUTPUTS), {"images": batch.numpy().astype(np.float32)})))
    with torch.no_grad():
        logits, scores = scorer.judge(scorer.pixels(batch.to(scorer.device)))
    return max(_apart(theirs["logits"], logits), _apart(theirs["score"], scores))


def _apart(theirs: NDArray[Any], ours: Tensor) -> float:
    expected = ours.cpu().double().numpy()
    if not np.isfinite(theirs).all():
        return float("inf")
    largest = float(np.abs(expected).max()) or 1.0
    return float(np.abs(theirs.astype(np.float64) - expected).max()) / largest


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter's remarks about hooks and deprecations are for its authors."""
    import logging

    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir", "torch.export")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)
