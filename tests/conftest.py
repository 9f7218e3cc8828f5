"""What all tests share: an empty cache, a seeded world, and the real data where there are some."""

import os
from pathlib import Path

import pytest
import torch

from tests.examples import TIER, load_tier
from tests.postgres import postgres, store_location  # noqa: F401  (fixtures of all tests)

# the tensors of most tests are too small to share; waiting threads would only spin
torch.set_num_threads(1)
load_tier(os.environ.get(TIER, "test"))


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    """No test sees another's cache, nor the user's."""
    monkeypatch.setenv("OODSCOPE_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real image packs, or a skip that says how to get one."""
    named = os.environ.get("OODSCOPE_DATA", "")
    if not named or not Path(named).is_dir():
        pytest.skip("OODSCOPE_DATA does not name a folder of real image packs")
    return Path(named).resolve()
