"""Statuses of files do not depend on how many threads ask for them."""

import numpy as np
import pytest

from oodscope.data.images import filedigests
from oodscope.data.images.filedigests import MISSING, Statuses


@pytest.mark.parametrize("count", [0, 1, 7])
def test_threads_see_what_one_sees(tmp_path, monkeypatch, count):
    names = [f"{number}.png" for number in range(count)]
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(b"x" * number)
    if names:
        names[count // 2 : count // 2] = ["gone.png", "folder"]
        (tmp_path / "folder").mkdir()
    alone = Statuses.read(tmp_path, names)
    monkeypatch.setattr(filedigests, "BATCH", 2)
    monkeypatch.setattr(filedigests, "SLOW", -1.0)
    monkeypatch.setattr(filedigests, "threads", lambda: 3)
    several = Statuses.read(tmp_path, names)
    assert np.array_equal(alone.sizes, several.sizes)
    assert np.array_equal(alone.times, several.times)
    assert alone.missing() == several.missing() == ([count // 2, count // 2 + 1] if names else [])
    assert sorted(alone.sizes[alone.sizes != MISSING].tolist()) == list(range(count))
