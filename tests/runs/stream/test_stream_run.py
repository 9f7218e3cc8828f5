"""A run of streams: from arrays to its saved tables, chapter and report, by job file and by command."""

import json

import numpy as np
import pytest

import oodscope as oods
from oodscope.base.errors import DataError, UsageError
from oodscope.jobs.stream import ENTRIES, make_entries
from oodscope.metrics.stream import window_auroc
from oodscope.results.opening import open_runs
from oodscope.runs.evaluation.activations import open_arrays
from oodscope.runs.stream.gains import Gain
from oodscope.runs.stream.protocol import StreamProtocol, streams_of
from oodscope.runs.stream.run import StreamRun
from oodscope.runs.stream.schedule import Schedule
from oodscope.runs.stream.stream import stream

PLANS = (
    Schedule(share=0.5, images=60, batch=8),
    Schedule(share=0.2, images=60, batch=8, order="bursts", burst=6),
    Schedule(share=0.2, images=60, batch=8, drift=0.5, delay=10),
    Schedule(share=0.5, images=60, batch=8, order="id_first"),
)


def arrays(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    features = (rng.normal(size=(n, 6)) + 3 * np.eye(6)[labels] + shift).astype("f4")
    return {"features": features, "logits": features[:, :3], "labels": labels}


def opened(csid=True):
    single = {"id_train": arrays(120, 0), "id_val": arrays(80, 1), "id_test": arrays(90, 2), "ood_val": None}
    groups = {"near": {"near": arrays(50, 4, shift=0.5)}, "far": {"far": arrays(60, 3, shift=1.5)}}
    shifted = {"csid": {"blurred": arrays(90, 5, 0.1)}} if csid else {}
    return open_arrays(single, groups | shifted, name="toy", model="m")


@pytest.fixture(scope="module")
def run():
    protocol = StreamProtocol(windows=6, rolling=40)
    return stream(*opened(), make_entries(ENTRIES), PLANS, draws=4, protocol=protocol)


def test_every_number_is_that_of_the_stored_scores(run):
    values = {}
    for each in streams_of(run.scores):
        assert len(each.is_ood) == 60
        values.setdefault((each.schedule.name, each.set), []).append(window_auroc(each.scores["knn"], each.is_ood, 6))
    rows = {(row.group, row.set): row for row in run.measurements.filter(metric="window_auroc", detector="knn")}
    held = {key: np.mean(each) for key, each in values.items() if not np.isnan(each).any()}
    assert len(held) == 6 and set(rows) == set(held)  # where all ID images come first no window holds both
    assert all(rows[key].value == pytest.approx(value) for key, value in held.items())
    assert run.protocol.measurements(run.scores) == run.measurements


def test_a_constant_detector_scores_an_image_the_same_wherever_it_comes(run):
    frame = run.scores.frame
    spread = frame.groupby(["set", "sample_id"], observed=True)[["knn", "oodd"]].agg(np.ptp)
    assert (spread["knn"] == 0).all() and (spread["oodd"] > 0).any()


def test_bursts_are_measured_where_images_come_in_runs(run):
    groups = set(run.measurements.filter(metric="images_to_half_burst").distinct("group"))
    assert groups == {PLANS[1].name, PLANS[3].name}


def test_stream_detectors_are_ranked_apart(run):
    rows = run.measurements.filter(metric="window_auroc")
    ranked = {row.detector for row in rows if row.rank_low is not None}
    assert ranked == {"oodd", "oodd(mode=causal)", "running_prototypes"}
    assert {entry.detector for trial in run.trials() for entry in trial.entries} == ranked
    assert all(any(plan.name in trial.where for plan in PLANS) for trial in run.trials())
    sections = {row.name: row.section for row in run.table().rows}
    assert sections["knn"] == "constant" and sections["oodd"] == "transductive"


def test_gains_are_paired_and_say_what_their_interval_allows(run):
    found = {(each.schedule, each.set, each.entry): each for each in run.gains()}
    gain = found[PLANS[0].name, "far", "msp"]
    values = run.protocol.values(run.scores)[PLANS[0].name, "far"]["window_auroc"]
    place = [run.scores.detectors.index(name) for name in ("msp", "knn")]
    gaps = values[:, place[0]] - values[:, place[1]]
    half = 3.182446 * gaps.std(ddof=1) / 2  # Student's t of 3 degrees of freedom, 4 streams
    assert (gain.value, gain.low, gain.high) == pytest.approx((gaps.mean(), gaps.mean() - half, gaps.mean() + half))
    assert found[PLANS[3].name, "far", "msp"].word == "cannot say"
    words = [
        Gain("s", "o", "a", "b", "window_auroc", 9, 0.0, low, high).word
        for low, high in ((0.001, 0.2), (-0.2, -0.001), (-0.009, 0.009), (-0.02, 0.001))
    ]
    assert words == ["better", "worse", "no difference", "cannot say"]
    assert Gain("s", "o", "a", "b", "alarms_per_1000", 9, 1.0, 0.5, 2.0).word == "worse"


def test_a_saved_run_opens_prints_and_has_a_chapter(run, tmp_path):
    run.save(tmp_path / "run")
    (again,) = open_runs(tmp_path)
    assert isinstance(again, StreamRun) and again.measurements == run.measurements and again.baseline == "knn"
    assert "against knn" in again.chapter().verdict and again.table(metric="auroc").rows
    oods.write_report(again, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "bursts of 6" in page and "transductive" in page


def test_job_file_and_command_make_the_same_run(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from oodscope.cli.app import app

    monkeypatch.chdir(tmp_path)
    sets = {"id_train": arrays(120, 0), "id_val": arrays(80, 1), "id_test": arrays(90, 2), "o": arrays(60, 3, 1.5)}
    for name, each in sets.items():
        np.savez(f"{name}.npz", **each)
    files = {"id_train": "id_train.npz", "id_val": "id_val.npz", "id_test": "id_test.npz", "far": {"o": "o.npz"}}
    plan = {"share": 0.3, "images": 40, "batch": 5}
    job = {
        "activations": files,
        "detectors": ["knn", {"oodd": {"mode": "causal", "queue": 6}}],
        "stream": {"schedules": [plan], "draws": 3, "rolling": 20},
        "output": "by_file",
    }
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    by_file = oods.run("job.yaml")
    given = "id_train=id_train.npz,id_val=id_val.npz,id_test=id_test.npz,far:o=o.npz"
    asked = ["-d", "knn,oodd,mode=causal,queue=6", "--schedule", "share=0.3,images=40,batch=5"]
    words = ["stream", "--activations", given, *asked, "--draws", "3", "--rolling", "20", "-o", "by_command", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["measurements"]
    assert [row["value"] for row in rows] == pytest.approx([row.value for row in by_file.measurements])
    assert {row["detector"] for row in rows} == {"knn", "oodd(mode=causal, queue=6)"}


def test_what_cannot_be_drawn_is_refused_before_any_work():
    entries = make_entries(["knn", "oodd"])
    for plans, words in (
        ([Schedule(images=400)], "200 ID images are needed, and id_test has 90"),
        ([Schedule(share=0.6, images=90)], "54 OOD images are needed, and near has 50"),
        ([Schedule(images=60, drift=0.2)], "there is no csid set"),
        ([Schedule(images=60), Schedule(images=60)], "two schedules are called"),
    ):
        with pytest.raises(DataError, match=words):
            stream(*opened(csid=False), entries, plans, draws=2, protocol=StreamProtocol(rolling=40))
    with pytest.raises(DataError, match="set rolling to 80 or less"):
        stream(*opened(), entries, [Schedule(images=60)], draws=2)
    with pytest.raises(oods.OodscopeError, match="needs a constant detector"):
        stream(*opened(), make_entries(["oodd"]), PLANS, draws=2)
    with pytest.raises(UsageError, match="unknown detector 'ood'"):
        make_entries(["ood"])
    with pytest.raises(UsageError, match="oodd: no parameter 'quee'"):
        make_entries([{"oodd": {"quee": 3}}])


def test_an_evaluation_sends_stream_detectors_to_their_command(tmp_path):
    (tmp_path / "job.yaml").write_text(json.dumps({"benchmark": "glyphs", "detectors": ["oodd"], "model": "x"}))
    with pytest.raises(UsageError, match="oodscope stream"):
        oods.run(tmp_path / "job.yaml")
