"""The measured rise is the real one."""

import mmap
import time
from pathlib import Path

import numpy as np
import pytest

from oodscope.execution.memory import PeakMemory

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say")


def test_a_block_that_is_gone_at_the_end_is_still_seen():
    with PeakMemory("cpu") as memory:
        # straight from the system: malloc might reuse what an earlier test left resident, and nothing would rise
        block = mmap.mmap(-1, 40 * 2**20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block.write(bytes(2**20) * 40)
        time.sleep(0.5)
        block.close()
    assert 35 <= memory.mib <= 80


def test_a_memory_map_does_not_count(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(40 * 2**20 // 8))
    with PeakMemory("cpu") as memory:
        total = np.load(tmp_path / "x.npy", mmap_mode="r").sum()
    assert total == 40 * 2**20 // 8
    assert memory.mib < 20
