"""Submissions, kills, revocations and restarts in any order: no accepted entry is lost, no mixture is served."""

import pytest

from tests.serve.live import Live
from tests.serve.machine import Machine

pytestmark = pytest.mark.slow


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "board").mkdir()
    live = Live(tmp_path, "--submissions")
    yield Machine(live, tmp_path / "made", seed=26)
    live.stop()


def test_one_step_of_each_kind(machine):
    for kind in (
        "submit",
        "submit_again",
        "revoke",
        "submit_revoked",
        "submit_damaged",
        "remove",
        "kill_during_a_submission",
    ):
        machine.do(getattr(machine, kind))
    machine.check_trail()
    assert machine.accepted and machine.removed


@pytest.mark.soak
def test_a_thousand_steps(machine):
    for _ in range(1000):
        machine.step()
    machine.check_trail()
    assert len(machine.taken) == 11, "steps of every kind were taken"
