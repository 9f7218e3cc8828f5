"""A monitor that is stopped and taken up again is one that never stopped."""

import json

import numpy as np
import pytest

from oodscope.base.errors import OodscopeError
from oodscope.deploy.monitor import Monitor
from oodscope.metrics.rejection.conformal import calibrate


def test_stopped_and_taken_up_again_is_never_stopped(tmp_path):
    rng = np.random.default_rng(0)
    calibration, stream = calibrate(np.round(rng.normal(size=80), 1), 0.1), np.round(rng.normal(size=60) + 1, 1)
    whole = Monitor(calibration, alpha=0.05, seed=3)
    expected = whole.observe(stream)
    first = Monitor(calibration, alpha=0.05, seed=3)
    parts = first.observe(stream[:25])
    first.save(tmp_path / "state.json")
    second = Monitor.load(tmp_path / "state.json", calibration)
    assert parts + second.observe(stream[25:]) == expected
    assert (second.alarm.alarm, second.alarm.log_evidence) == (whole.alarm.alarm, whole.alarm.log_evidence)


def test_a_state_of_another_detector_or_a_damaged_one_is_refused(tmp_path):
    calibration = calibrate(np.arange(50.0), 0.1)
    Monitor(calibration).save(tmp_path / "state.json")
    with pytest.raises(OodscopeError, match="watched another detector"):
        Monitor.load(tmp_path / "state.json", calibrate(np.arange(51.0), 0.1))
    state = json.loads((tmp_path / "state.json").read_text())
    for damage in ({"alpha": 2.0}, {"format": 9}, {"scores": ["x"]}, {"more": 1}):
        (tmp_path / "bad.json").write_text(json.dumps({**state, **damage}))
        with pytest.raises(OodscopeError, match=r"bad\.json"):
            Monitor.load(tmp_path / "bad.json", calibration)
