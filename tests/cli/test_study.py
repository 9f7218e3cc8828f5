"""``oodscope run`` with a list of models: evaluated one by one, and not again."""

import json

import pytest
from safetensors.torch import save_file

from oodscope.models.zoo.zoo import create_model
from tests.cli.test_run import change, project  # noqa: F401

STUDY = """
benchmark: bench.yaml
detectors: [msp]
protocols: [{human_centric: {threshold_split: true, costs: {false_acceptance: 5}}}]
models:
  - {name: one, architecture: small_cnn, weights: net.safetensors, family: CNN}
  - {name: two, architecture: small_cnn, weights: other.safetensors, family: CNN, distilled_from: one}
"""


@pytest.fixture
def study(project):  # noqa: F811
    model, _ = create_model("small_cnn", num_classes=3)
    save_file({name: 1.1 * value for name, value in model.state_dict().items()}, project / "other.safetensors")
    (project / "study.yaml").write_text(STUDY)
    return project / "study.yaml"


def runs(folder):
    """The evaluations; the study itself lies beside them."""
    return sorted(path.parent.name for path in folder.glob("*/run.json") if path.parent.name != "study")


def record(folder):
    return json.loads((folder / "run.json").read_text())["record"]


@pytest.mark.slow
def test_every_model_once(oodscope, study, tmp_path):
    out = tmp_path / "out"
    first = oodscope("run", study, "--output", out)
    assert first.status == 0, first
    assert {"study.csv", "study.md", "plans", "figures"} <= {path.name for path in out.iterdir()}
    for rule in ("train", "val"):
        assert (out / "figures" / f"distillation-{rule}-correct.png").is_file()
    done = runs(out)
    assert len(done) == 2
    records = {each["labels"]["name"]: each for each in (record(out / name) for name in done)}
    assert any("thresholds taken from" in note for note in records["one"]["notes"])
    assert records["one"]["labels"] == {"name": "one", "family": "CNN"}
    # what the study knew of its models is kept, so its runs alone make its figures
    figure = oodscope("figure", "human-7", out, "--output", tmp_path / "pair.svg")
    assert figure.status == 0 and (tmp_path / "pair.svg").is_file(), figure
    shown = oodscope("table", out, "--format", "json")
    assert shown.status == 0, shown
    assert {row["model"] for row in json.loads(shown.out)["rows"]} == {"one", "two"}
    again = oodscope("run", study, "--output", out, "--json")
    assert again.status == 0, again
    assert runs(out) == done
    assert {row["model"] for row in json.loads(again.out)["rows"]} == {"one", "two"}
    # other weights under the same name are another model
    (study.parent / "other.safetensors").write_bytes((study.parent / "net.safetensors").read_bytes())
    assert oodscope("run", study, "--output", out).status == 0
    assert len(runs(out)) == 3


@pytest.mark.parametrize(
    ("old", "new", "message", "status"),
    [
        (
            "distilled_from: one",
            "distilled_from: none",
            "two: distilled_from 'none' is not one of the study's",
            1,
        ),
        ("name: two", "name: one", "two models of the study are called 'one'", 1),
        ("family: CNN, d", "familly: CNN, d", "unknown key 'model.familly'", 2),
        (
            "protocols: [{human_centric: {threshold_split: true, costs: {false_acceptance: 5}}}]",
            "protocols: [standard]",
            "a study shows the numbers of human_centric",
            2,
        ),
        (
            "threshold_split",
            "threshold_splitt",
            "human_centric: no option 'threshold_splitt'. Did you mean",
            2,
        ),
    ],
)
def test_a_mistake_is_one_line_before_any_work(oodscope, study, tmp_path, old, new, message, status):
    change(study, old, new)
    outcome = oodscope("run", study, "--output", tmp_path / "out")
    assert outcome.status == status
    assert message in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
