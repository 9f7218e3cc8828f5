"""Plans of work: every unit is done once, whoever works, whatever fails and whoever is killed."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oodscope.base.errors import OodscopeError, StorageError, UsageError
from oodscope.execution.launch.launcher import refuse_unfinished
from oodscope.execution.launch.slurm import SlurmLauncher, sbatch_options
from oodscope.execution.plan import WorkPlan
from oodscope.execution.units import Share, Unit
from oodscope.execution.work import work
from tests.examples import examples
from tests.execution.simulated_slurm import ended, install


def unit(number, needs=(), kind="write"):
    return Unit(kind=kind, spec={"number": number}, needs=tuple(each.name for each in needs))


def write(asked, plan):
    """Publishes the number of the unit, and says on a line of its own that it was asked."""
    with (plan.folder / "asked.txt").open("a") as stream:
        stream.write(f"{asked.spec['number']}\n")
    if asked.spec["number"] < 0:
        raise ValueError("negative\nand more")
    first = plan.place.create(f"results/{asked.spec['number']}", str(os.getpid()).encode())
    return {"first": first}


def made(folder, units):
    return WorkPlan.create(folder, units, output=folder)


def asked(plan):
    path = plan.folder / "asked.txt"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def test_a_name_is_a_hash_of_kind_and_spec():
    assert unit(1).name == unit(1).name != unit(2).name
    assert unit(1).name == Unit(kind="write", spec={"number": 1}, seconds=3.0, label="other words").name
    assert unit(1).name != unit(1, kind="other").name


@given(st.integers(1, 40), st.integers(1, 9))
def test_every_unit_is_in_exactly_one_share(count, parts):
    shares = [Share(number=number, count=parts) for number in range(parts)]
    assert all(sum(share.owns(position) for share in shares) == 1 for position in range(count))


@pytest.mark.parametrize("text", ["", "1", "3/3", "-1/2", "1/0", "a/b", "1/2/3", "0/9999999"])
def test_a_bad_share_is_one_line(text):
    with pytest.raises(UsageError, match="--share"):
        Share.read(text)


def test_all_units_are_done_after_what_they_need(tmp_path):
    first = unit(1)
    second = unit(2, [first])
    plan = made(tmp_path, [unit(3, [second]), second, first])
    worked = work(plan, write)
    assert asked(plan) == [1, 2, 3] and len(worked.done) == 3
    status = plan.status()
    assert status.finished and not status.running and not status.failed and not status.left
    assert not work(plan, write).done and asked(plan) == [1, 2, 3]


def test_a_failing_unit_costs_only_what_needs_it(tmp_path):
    bad = unit(-1)
    plan = made(tmp_path, [bad, unit(2, [bad]), unit(3)])
    worked = work(plan, write)
    assert worked.failed == {bad.name: "ValueError: negative"}
    assert worked.blocked == [unit(2).name] and asked(plan) == [-1, 3]
    with pytest.raises(OodscopeError, match=r"ValueError: negative \(1 of 3 units failed"):
        refuse_unfinished(plan)
    assert plan.forgive() == 1
    work(plan, write)
    assert asked(plan) == [-1, 3, -1]


def test_only_the_kinds_that_are_asked_for(tmp_path):
    first = unit(1)
    plan = made(tmp_path, [first, unit(2, [first], kind="other"), unit(3, kind="other")])
    worked = work(plan, write, kinds=["other"])
    assert asked(plan) == [3] and worked.blocked == [unit(2, kind="other").name]


def test_a_plan_is_written_once(tmp_path):
    plan = made(tmp_path, [unit(1)])
    assert made(tmp_path, [unit(1)]).units == plan.units
    with pytest.raises(StorageError, match="another plan"):
        made(tmp_path, [unit(2)])
    with pytest.raises(OodscopeError, match="the same"):
        made(tmp_path / "b", [unit(1), unit(1)])
    with pytest.raises(OodscopeError, match="not in the plan"):
        made(tmp_path / "c", [unit(1, [unit(2)])])


def test_a_plan_of_another_user_is_not_worked_on(tmp_path, monkeypatch):
    made(tmp_path, [unit(1)])
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(OodscopeError, match="another user"):
        work(WorkPlan(tmp_path), write)


def test_a_plan_that_anybody_may_write_is_not_worked_on(tmp_path):
    made(tmp_path, [unit(1)])
    (tmp_path / "plan.json").chmod(0o666)
    with pytest.raises(OodscopeError, match="anybody may write"):
        work(WorkPlan(tmp_path), write)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', "\x00", "[" * 100_000])
def test_a_damaged_plan_is_one_line(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(OodscopeError, match=r"plan\.json"):
        WorkPlan(tmp_path).status()


def test_the_marker_of_a_dead_process_does_not_count(tmp_path):
    plan = made(tmp_path, [unit(1)])
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    plan.mark_running(unit(1))
    (path,) = (tmp_path / "running").glob("*/*.json")
    content = json.loads(path.read_text())
    assert plan.status().running.keys() == {unit(1).name}
    path.write_text(json.dumps({**content, "pid": process.pid}))
    assert not plan.status().running
    work(plan, write)
    assert asked(plan) == [1]


def test_a_unit_of_another_machine_is_waited_for_and_then_done_here(tmp_path, monkeypatch):
    monkeypatch.setattr("oodscope.execution.work.PATIENCE", 0.3)
    plan = made(tmp_path, [unit(1)])
    (tmp_path / "running" / unit(1).name).mkdir(parents=True)
    marker = {"host": "elsewhere", "pid": 1, "since": time.time()}
    (tmp_path / "running" / unit(1).name / "elsewhere-1.json").write_text(json.dumps(marker))
    begun = time.monotonic()
    work(plan, write)
    assert asked(plan) == [1] and time.monotonic() - begun >= 0.3


def slowly(asked_unit, plan):
    time.sleep(0.02)
    return write(asked_unit, plan)


def share_of(folder, share):
    work(WorkPlan(folder), slowly, share=Share.read(share))


def test_processes_share_the_work_and_each_unit_is_done_once(tmp_path):
    first = unit(0)
    plan = made(tmp_path, [first, *(unit(number, [first]) for number in range(1, 21))])
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=share_of, args=(tmp_path, f"{number}/3")) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert plan.status().finished
    # two may begin the same unit in the same moment; never is one lost, and what is published is one writer's
    assert set(asked(plan)) == set(range(21)) and len(asked(plan)) <= 21 + 3
    records = [plan.record(each.name) for each in plan.units]
    assert len({record["pid"] for record in records}) > 1


class KilledError(BaseException):
    """Stands for SIGKILL: nothing is tidied up after it."""


@examples(40)
@given(
    count=st.integers(1, 8),
    edges=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12),
    visits=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=10),
)
def test_random_plans_shares_and_kills_end_with_the_same_results(tmp_path_factory, count, edges, visits):
    folder = tmp_path_factory.mktemp("plan")
    units = []
    for number in range(count):
        needs = {source for source, target in edges if target == number and source < number}
        units.append(unit(number, [units[each] for each in sorted(needs)]))
    plan = made(folder, units)

    def killed_after(limit):
        def do(each, of):
            if len(asked(of)) - before >= limit:
                # the marker of the killed process stays behind
                raise KilledError
            return write(each, of)

        return do

    for number, limit in visits:
        before = len(asked(plan))
        try:
            work(plan, killed_after(limit), share=Share(number=number, count=4))
        except KilledError:
            assert not plan.status().finished
    work(plan, write)
    assert sorted(asked(plan)) == list(range(count)), "nothing is lost, and nothing done twice by one after the other"
    assert plan.status().finished
    order = asked(plan)
    assert all(order.index(source) < order.index(target) for source, target in edges if source < target < count)


PROGRAM = """
import sys, time
from oodscope.cli import main
from oodscope.jobs.units import kinds

def do(unit, plan):
    print("begun", flush=True)
    time.sleep(60)
    return {}

kinds.do = do
sys.argv = ["oodscope", "work", sys.argv[1], "-q"]
main()
"""


@pytest.mark.slow
def test_sigterm_ends_a_worker_and_leaves_the_unit_to_others(tmp_path):
    plan = made(tmp_path, [unit(1)])
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    status = plan.status()
    assert not status.running and not status.failed and status.left == (unit(1).name,)


def test_slurm_gets_an_array_with_static_shares(tmp_path):
    plan = made(tmp_path / "plan", [unit(1)])
    launcher = SlurmLauncher(4, sbatch_options(["partition=gpu", "time=2:00:00"]))
    for script in launcher.scripts(plan):
        text = script.read_text()
        assert "#SBATCH --partition=gpu\n#SBATCH --time=2:00:00\n" in text and "@" not in text.replace("TERM@60", "")
        subprocess.run(["bash", "-n", str(script)], check=True)
        if shutil.which("shellcheck"):
            subprocess.run(["shellcheck", str(script)], check=True)
    assert '--share "${SLURM_ARRAY_TASK_ID}/4"' in (tmp_path / "plan" / "array.sbatch").read_text()
    assert "#SBATCH --array=0-3\n" in (tmp_path / "plan" / "array.sbatch").read_text()


@pytest.mark.parametrize("text", ["partition", "a b=c", "time=1\n#SBATCH --x=1", "array=0-9", "=x", "x=$(id)"])
def test_hostile_options_of_sbatch_are_refused(text):
    with pytest.raises(UsageError, match="--slurm"):
        sbatch_options([text])


HELD = """
import os, pathlib, time
begun = pathlib.Path(__file__).with_name("begun")
if os.environ.get("SLURM_ARRAY_TASK_ID") == "0" and not begun.exists():
    begun.touch()
    time.sleep(60)
"""


@pytest.mark.slow
def test_an_array_that_is_preempted_is_run_again_and_all_tasks_end(tmp_path, monkeypatch):
    for name, value in install(tmp_path, preempted=[0], after=0.5).items():
        monkeypatch.setenv(name, value)
    # the first start of task 0 is held until it is preempted, so that a fast machine has not ended it before
    (tmp_path / "sitecustomize.py").write_text(HELD)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    plan = made(tmp_path / "plan", [unit(number, kind="nothing") for number in range(3)])
    SlurmLauncher(2).run(plan)
    # no task knows the kind: whichever reaches a unit first says so, the join says so, and the plan shows it
    ends = ended(tmp_path)
    assert sorted(task for task, _ in ends) == ["0", "0", "1", "None"] and ("0", "143") in ends
    assert {("0", "1"), ("1", "1")} & set(ends) and ends[-1] == ("None", "1") and len(plan.status().failed) == 3
    assert (tmp_path / "plan" / "join.sbatch").exists()
