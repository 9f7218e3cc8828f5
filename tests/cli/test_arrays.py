"""``oodscope evaluate`` with arrays or scores in the place of a network and images."""

import json

import numpy as np
import pytest

from oodscope.results.store.store import ResultStore
from oodscope.runs.evaluation.run import Result
from tests.runs.evaluation.test_activations import score_frame, small


@pytest.fixture
def files(tmp_path):
    """Arrays of three sets in the folder in which commands run."""
    given = small()
    for name, arrays in (
        ("train", given["id_train"]),
        ("test", given["id_test"]),
        ("letters", given["near"]["letters"]),
    ):
        np.savez(tmp_path / f"{name}.npz", **arrays)
    score_frame().to_csv(tmp_path / "scores.csv", index=False)
    return tmp_path


SETS = [
    *("--activations", "id_train=train.npz", "--activations", "id_test=test.npz"),
    *("--activations", "near:letters=letters.npz"),
]


@pytest.mark.slow
def test_arrays_are_evaluated_saved_stored_and_reported(oodscope, files):
    done = oodscope("evaluate", *SETS, "--detectors", "msp,knn", "--model-name", "mine", "-o", "out")
    assert done.status == 0, done
    assert "letters" in done.out
    (folder,) = [path.parent for path in files.glob("out/*/run.json")]
    assert Result.load(folder).record.model == "mine"
    assert (folder / "report.html").is_file()
    assert len(ResultStore(files / "out" / "results.sqlite").runs()) == 1
    assert oodscope("compare", folder).status == 0


@pytest.mark.slow
def test_scores_are_evaluated_saved_stored_and_reported(oodscope, files):
    done = oodscope("evaluate", "--scores", "scores.csv", "--detectors", "mine", "--json")
    assert done.status == 0, done
    told = json.loads(done.out)
    assert {row["detector"] for row in told["measurements"]} == {"mine"}
    assert (files / told["folder"] / "report.html").is_file()
    job = files / "job.yaml"
    job.write_text("scores: scores.csv\ndetectors: [mine, other]\noutput: again\n")
    assert oodscope("run", job).status == 0


@pytest.mark.parametrize(
    ("options", "words", "status"),
    [
        ([*SETS, "--benchmark", "glyphs"], "--activations and --benchmark do not go together", 2),
        ([*SETS, "--model", "small_cnn"], "--activations and --model do not go together", 2),
        ([*SETS, "--id-test", "folder"], "--activations and --id-test do not go together", 2),
        ([*SETS, "--scores", "scores.csv"], "--activations and --scores do not go together", 2),
        (["--scores", "scores.csv", "--near", "folder"], "--scores and --near do not go together", 2),
        (["--scores", "scores.csv", "--device", "cpu"], "--scores and --device do not go together", 2),
        (["--activations", "id_tets=test.npz"], "unknown role 'id_tets'. Did you mean 'id_test'", 2),
        (["--activations", "test.npz"], "write ROLE=FILE or ROLE:NAME=FILE", 2),
        (["--activations", "id_test:a=test.npz"], "id_test is one set and takes no name", 2),
        ([*SETS, "--activations", "near:letters=test.npz"], "near:letters is given twice", 2),
        (["--activations", "near=letters.npz"], "id_test", 2),
        ([*SETS, "--detectors", "mps"], "unknown detector 'mps'", 2),
        ([*SETS, "--detectors", "odin"], "odin: needs images and the network", 1),
        (["--scores", "scores.csv", "--detectors", "mien"], "unknown detector 'mien'. Did you mean 'mine'", 2),
        (["--scores", "none.csv"], "none.csv: no such file", 1),
        (["--benchmark", "glyphs"], "no network: pass --model NAME, or --activations ROLE=FILE, or --scores FILE", 2),
        (
            ["--benchmark", "glyphs", "--model", "small_cnn", "--model-name", "x"],
            "--model-name names the network behind",
            2,
        ),
    ],
)
def test_mistakes_end_in_one_line(oodscope, files, options, words, status):
    done = oodscope("evaluate", *options)
    assert done.status == status, done
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1, done


@pytest.mark.slow
def test_scores_of_another_tool_to_our_report_in_one_command_and_out_again(oodscope, tmp_path):
    rng = np.random.default_rng(0)
    for detector in ("msp", "knn"):
        for name, shift in (("id", 0), ("near", 1)):
            np.savez(tmp_path / f"{detector}-{name}.npz", conf=rng.normal(size=60) - shift, pred=np.zeros(60, int))
    sets = ("id_test={detector}-id.npz", "near:birds={detector}-near.npz")
    done = oodscope("import", *sets, "-d", "msp,knn", "--model-name", "theirs", "--intervals", "fast", "-o", "out")
    assert done.status == 0, done
    (folder,) = [path.parent for path in tmp_path.glob("out/*/run.json")]
    assert (folder / "report.html").is_file() and Result.load(folder).record.model == "theirs"
    seen = oodscope("precision", folder, "--prevalence", "0.5", "--prevalence", "0.01")
    assert seen.status == 0 and "1 % OOD" in seen.out and "birds" in seen.out, seen
    assert oodscope("precision", folder, "--prevalence", "5").status == 2
    shared = ("convert", folder, "-o", "e.json", "--to")
    assert oodscope(*shared, "every-eval-ever", "--organization", "me").status == 0
    assert (tmp_path / "e_samples.jsonl").is_file()
    for wrong, words in {
        ("import",): "pass files of scores, or --openood, or --pytorch-ood; there is nothing",
        ("import", *sets, "--pytorch-ood", "x.json"): "there are files and --pytorch-ood",
        ("import", "id_test", "-d", "msp"): "write ROLE=FILE",
        ("import", "id_test=a.npz", "-d", "msp,knn"): "for several detectors write {detector}",
        (*shared, "huggingface"): "--to huggingface needs --dataset",
        (*shared, "every-eval-ever"): "needs --organization",
    }.items():
        refused = oodscope(*wrong)
        assert refused.status == 2 and words in refused.err.splitlines()[-1], refused
