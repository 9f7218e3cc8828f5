"""Weights as float16 in files of a bounded size, for machines that hand back small files only."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

LIMIT = 15 * 1024**2
"""Bytes of a file, at most."""

_HEADER = 200
"""Bytes of a file's header for each tensor, at most: names of ours are shorter than a hundred characters."""


def write_pieces(weights: dict[str, Tensor], folder: Path, stem: str, limit: int = LIMIT) -> list[Path]:
    """``STEM.1of2.safetensors`` and so on, each of at most ``limit`` bytes; fractions as float16."""
    pieces: list[dict[str, Tensor]] = [{}]
    size = _HEADER
    for name, value in weights.items():
        stored = value.detach().cpu().contiguous()
        stored = stored.half() if stored.is_floating_point() else stored
        if not bool(torch.isfinite(stored).all()):
            raise ValueError(f"{name}: a value is too large for float16")
        needed = stored.numel() * stored.element_size() + _HEADER
        if needed + _HEADER > limit:
            raise ValueError(f"{name}: one tensor of {needed:,} bytes does not fit into a file of {limit:,}")
        if size + needed > limit:
            pieces.append({})
            size = _HEADER
        pieces[-1][name] = stored
        size += needed
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.{number}of{len(pieces)}.safetensors" for number in range(1, len(pieces) + 1)]
    for path, piece in zip(paths, pieces):
        save_file(piece, path)
    return paths


def read_pieces(folder: Path, stem: str) -> dict[str, Tensor]:
    """All tensors again, fractions as float32."""
    paths = sorted(folder.glob(f"{stem}.*of*.safetensors"))
    if not paths or len(paths) != int(paths[0].name.split("of")[-1].split(".")[0]):
        raise FileNotFoundError(f"{folder / stem}: {len(paths)} pieces are there, and not all")
    found = {name: value for path in paths for name, value in load_file(path).items()}
    return {name: value.float() if value.is_floating_point() else value for name, value in found.items()}
