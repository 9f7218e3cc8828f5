"""What extraction is compared with: the bare network, and nothing but decoding in processes."""

import os
import time
from multiprocessing import get_context
from typing import Any

import numpy as np
from PIL import Image


def decode_some(job: tuple[list[str], dict[str, Any]]) -> int:
    """What anybody would write: open, convert, resize the short side, crop the centre, array."""
    paths, settings = job
    size, side = settings["size"], settings["resize"] or settings["size"]
    for path in paths:
        with Image.open(path) as file:
            picture = file.convert("RGB")
        short = min(picture.size)
        if short != side:
            width, height = (int(side * edge / short) for edge in picture.size)
            picture = picture.resize((width, height), Image.Resampling.BILINEAR)
        left, top = (round((edge - size) / 2) for edge in picture.size)
        np.asarray(picture.crop((left, top, left + size, top + size)))
    return len(paths)


def decode_rate(paths: list[str], transform: Any) -> float:
    """Images per second of as many processes as cores, once they have started."""
    settings = {"size": transform.size, "resize": transform.resize}
    cores = len(os.sched_getaffinity(0))
    jobs = [(paths[start : start + 64], settings) for start in range(0, len(paths), 64)]
    with get_context("spawn").Pool(cores) as pool:
        pool.map(decode_some, [(paths[:4], settings)] * cores * 4, chunksize=1)
        started = time.perf_counter()
        count = sum(pool.imap_unordered(decode_some, jobs))
        return count / (time.perf_counter() - started)


def bare_rate(clf: Any, transform: Any, batch: int, seconds: float, layout: Any = None) -> float:
    """Images per second of the network on one batch that lies on the device, at its precision.

    Its memory lies as extraction lays it, unless a ``layout`` is named.
    """
    import torch

    from oodscope.models.classifier.network import at_precision, evaluating, memory_layout

    device = clf.device
    layout = layout or memory_layout(device, clf.precision)
    images = torch.randn(batch, len(transform.mean), transform.size, transform.size, device=device)
    images = images.to(memory_format=layout)
    if device.type == "cuda":
        clf.model.to(memory_format=layout)
    wait = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
    with evaluating(clf.model), at_precision(device, clf.precision), torch.no_grad():
        for _ in range(3):
            clf.model(images)
        wait()
        started, count = time.perf_counter(), 0
        while time.perf_counter() - started < seconds or count == 0:
            for _ in range(5 if device.type == "cuda" else 1):
                clf.model(images)
                count += batch
            wait()
        return count / (time.perf_counter() - started)
