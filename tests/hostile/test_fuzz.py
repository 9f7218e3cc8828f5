"""Whatever a file or a request holds, only errors for users come out, and damaged work is done again, never taken."""

import pytest

from tests.hostile.fuzzing import TARGETS, fuzz_all

SOAK_CASES = 10_000


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
def test_some_cases_end_in_errors_for_users(target):
    outcomes = fuzz_all(target, range(60))
    assert outcomes["refused"] + outcomes["healed"], "damage is noticed"


@pytest.mark.soak
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
def test_ten_thousand_cases_end_in_errors_for_users(target):
    assert fuzz_all(target, range(SOAK_CASES)).total() == SOAK_CASES
