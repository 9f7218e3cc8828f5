"""Ray: units as calls of actors; a worker or a node that dies changes nothing."""

import importlib.util
import threading
import time

import pytest

from oodscope.base.errors import OodscopeError
from oodscope.execution.launch.ray import RayLauncher
from oodscope.execution.plan import WorkPlan
from oodscope.execution.units import Unit

TARGET = "tests.execution.ray_units:do"
pytestmark = pytest.mark.slow
installed = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="the extra ray is not installed")


def planned(folder, numbers):
    first = Unit(kind="test", spec={"number": -1})
    units = [first, *(Unit(kind="test", spec={"number": number}, needs=(first.name,)) for number in numbers)]
    return WorkPlan.create(folder, units, output=folder)


def results(plan):
    return sorted(int(path.name) for path in (plan.local_folder() / "results").iterdir())


@installed
def test_actors_do_every_unit_and_a_failure_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    plan = planned(tmp_path, [*range(5), 99])
    with pytest.raises(OodscopeError, match=r"ValueError: a number too far \(1 of 7 units failed"):
        RayLauncher(2, TARGET).run(plan)
    assert results(plan) == [-1, 0, 1, 2, 3, 4, 99]
    records = [plan.record(unit.name) for unit in plan.units[:-1]]
    assert all(records) and len({record["pid"] for record in records}) <= 2, "actors live for many units"


@installed
@pytest.mark.soak
def test_a_node_that_is_killed_costs_nothing(tmp_path, monkeypatch):
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    plan = planned(tmp_path, range(24))

    def kill():
        while len(plan.status().done) < 5:
            time.sleep(0.1)
        cluster.remove_node(nodes[0], allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        RayLauncher(2, TARGET).run(plan)
    finally:
        killer.join(60)
        cluster.shutdown()
    assert results(plan) == list(range(-1, 24)) and plan.status().finished


def test_without_the_extra_it_is_one_line(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(OodscopeError, match=r"pip install 'oodscope\[ray\]'"):
        RayLauncher(2).run(planned(tmp_path, range(2)))
