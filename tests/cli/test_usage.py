"""Exit statuses, suggestions, list syntax and sign of life: what the command line does before any work."""

import os
import subprocess
import sys
import time

import pytest

NET = ("--model", "small_cnn", "--weights", "w.safetensors", "--benchmark", "glyphs")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("evaluat",), 2, "No such command 'evaluat'. Did you mean 'evaluate'?  See: oodscope -h"),
        (("evaluate", "--modle", "x"), 2, "No such option: --modle"),
        (("list", "detector"), 2, "'detector' is not one of 'detectors', "),
        (("evaluate", *NET, "--tune", "oodval"), 2, "Did you mean 'ood_val'?"),
        (("evaluate", *NET, "--detectors", "maha"), 2, "'mds' (Lee et al., NeurIPS 2018) or 'mahalanobis_pp'"),
        (("evaluate", *NET, "--detectors", "energy"), 2, "Did you mean 'ebo' (Liu et al., NeurIPS 2020)?"),
        (("evaluate", *NET, "--detectors", "MaxLogit"), 2, "Did you mean 'mls'"),
        (("evaluate", *NET, "--detectors", "softmax"), 2, "Did you mean 'msp'"),
        (("evaluate", *NET, "--detectors", "python:nowhere:Mine"), 2, "python:nowhere:Mine: cannot import 'nowhere'"),
        (("table", "--metric", "fpr95"), 2, "Did you mean 'fpr95_id_positive' or 'fpr95_ood_positive'?"),
        (("evaluate", "--model", "small_cnn", "--benchmark", "glyphs"), 2, "--model small_cnn needs weights: pass"),
        (("evaluate", "--benchmark", "glyphs"), 2, "no network: pass --model NAME, or --activations ROLE=FILE"),
        (("evaluate", *NET, "--near", "x"), 2, "--benchmark and --near do not go together"),
        (("evaluate", "--model", "python:net"), 2, "no evaluation data: pass --benchmark NAME, or --id-test PLACE"),
        (("fit", "--model", "python:net:build", "-o", "x"), 2, "fit: pass --id-cal (and --id-train) or --benchmark"),
        (("serve", "tokn"), 2, "No such command 'tokn'. Did you mean 'token'?  See: oodscope serve -h"),
        (("serve", "--token-file", "secret"), 2, "--token-file is for --submissions"),
        (("serve", "--submissions"), 1, "add a submitter (oodscope serve token add NAME)"),
        (("serve", "token", "add", "../up"), 1, "the submitter's name"),
        (("serve", "token", "revoke", "nobody"), 1, "no submitter 'nobody' with a token. Submitters: none"),
        (("power",), 2, "Missing argument 'run'"),
        (("power", "nothere"), 1, "nothere"),
        (("table", "nothere"), 1, "nothere: no such run folder, and no result store at runs/results.sqlite"),
        (("report", "nowhere"), 1, "nowhere: no such folder"),
        (("run", "gone.yaml"), 1, "gone.yaml: no such file"),
    ],
)
def test_one_line_and_the_right_status(oodscope, arguments, status, words):
    outcome = oodscope(*arguments)
    assert outcome.status == status, outcome
    assert words in outcome.err and outcome.err.startswith("oodscope: ")
    assert outcome.err.count("\n") == 1 and outcome.out == ""


def test_an_interrupt_is_130(oodscope, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("oodscope.cli.listing.plugins", interrupted)
    outcome = oodscope("list", "formats")
    assert outcome.status == 130 and "run the same command again" in outcome.err


def test_verbose_shows_the_traceback(oodscope):
    from oodscope.base.errors import UnknownNameError

    with pytest.raises(UnknownNameError):
        oodscope("evaluate", *NET, "--detectors", "knnn", "-v")
    assert oodscope("evaluate", *NET, "--detectors", "knnn").status == 2, "asked for once, not for ever"


def test_lists_are_separated_by_commas_or_repeated(tmp_path, monkeypatch):
    from oodscope.cli.options import places, separated

    assert separated(["msp,knn", " vim "]) == separated("msp, knn,vim") == ["msp", "knn", "vim"]
    assert separated(None) == []
    monkeypatch.chdir(tmp_path)
    assert places(["a,b", "c=d,e=f"]) == ["a", "b", "c=d", "e=f"]
    (tmp_path / "a,b").mkdir()
    assert places(["a,b", "c=a,b"]) == ["a,b", "c=a,b"], "a path that exists is one path"


OWN = """
import torch
import oodscope as oods

class Range(oods.Detector):
    "Span of the logits, negated."
    name, needs = "{name}", oods.Needs.LOGITS

    def _score(self, batch):
        return -(batch.logits.max(1).values - batch.logits.min(1).values)

class Other:
    name = "other"
"""


@pytest.fixture
def scores(tmp_path):
    import numpy as np

    rng = np.random.default_rng(0)
    for name in ("test", "near"):
        np.savez(tmp_path / f"{name}.npz", logits=rng.normal(size=(40, 3)), labels=np.arange(40) % 3)
    return ("evaluate", "--activations", "id_test=test.npz,near:odd=near.npz", "-o", "runs")


@pytest.mark.slow
def test_an_own_detector_by_command(oodscope, scores, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mine_here", None)
    monkeypatch.delitem(sys.modules, "mine_here")
    (tmp_path / "mine_here.py").write_text(OWN.replace("{name}", "logit_span"))
    done = oodscope(*scores, "--detectors", "msp,python:mine_here:Range")
    assert done.status == 0, done
    assert ("logit_span" in done.out and "±" in done.out) or "–" in done.out
    refused = oodscope(*scores, "--detectors", "python:mine_here:Other")
    assert refused.status == 1 and "must be a subclass of oodscope.Detector" in refused.err
    refused = oodscope(*scores, "--detectors", "python:mine_here:Rang")
    assert "'mine_here' has no class 'Rang'. Did you mean 'Range'?" in refused.err


def test_an_own_detector_may_not_take_a_name(oodscope, scores, tmp_path, monkeypatch):
    (tmp_path / "mine_taken.py").write_text(OWN.replace("{name}", "msp"))
    refused = oodscope(*scores, "--detectors", "python:mine_taken:Range")
    assert refused.status == 1 and "its name 'msp' is taken" in refused.err


@pytest.mark.slow
def test_something_is_seen_before_torch_is_imported(tmp_path):
    """The first line stands on stderr while torch is still to be imported; --quiet keeps it away."""
    code = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'torch': sys.stderr.write('IMPORT\\n'); sys.exit(0)\n"
        "sys.meta_path.insert(0, Block())\n"
        "from oodscope.cli import main\n"
        "main()"
    )

    def shown(*options):
        command = [sys.executable, "-c", code, "demo", "-o", str(tmp_path), *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ).stderr

    assert shown().splitlines() == ["loading PyTorch ...", "IMPORT"]
    assert shown("-q").splitlines() == ["IMPORT"]


@pytest.mark.slow
def test_the_first_line_comes_within_a_second():
    """Of processor time, since other tests may hold the clock."""
    code = (
        "import sys, time; sys.argv = ['oodscope', 'demo', '-o', '/dev/null/x']\n"
        "import oodscope.cli.command as c; from oodscope.cli.app import app\n"
        "c.loading(); sys.stdout.write(str(time.process_time()))"
    )
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert float(done.stdout) < 1, (done, time.perf_counter() - started)


def test_stages_have_units():
    from oodscope.execution.console import unit_of

    assert [unit_of(each) for each in ("fit", "score", "measure", "extract id_test", "train small_cnn")] == [
        *("detectors", "detectors", "protocols", "images", "steps")
    ]
    assert unit_of("fold 3: train 40 heads") == "epochs" and unit_of("knn: ID images") == "images"


def test_what_a_search_chose_is_printed(capsys):
    from oodscope.cli.output import show
    from oodscope.results.context import DetectorContext
    from tests.results.factory import make_result

    result = make_result()
    context = DetectorContext(name="knn", params={"k": 50}, tuning="ood_val", grid_size=5, validation_auroc=0.9)
    result.scores.context.detectors["knn"] = context
    from pathlib import Path

    show((result, Path("here")), as_json=False)
    assert "tuned knn: k=50 (ood_val, best of 5, validation AUROC 90.00)" in capsys.readouterr().out
