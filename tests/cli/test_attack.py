"""``oodscope attack``: from options to a page; resumed, refused."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import save_file

from oodscope.jobs.attack import AttackSettings
from oodscope.models.generators.saved import save_generator
from oodscope.models.generators.stylegan import GeneratorShape, StyleGenerator
from oodscope.models.zoo.zoo import create_model
from oodscope.runs.attack.run import Attack


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A user's files: images, a network, a generator."""
    folder, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(0)
    for name in ("train", "val", "test", "odd"):
        pixels = rng.integers(0, 256, size=(12, 28, 28, 3)).astype(np.uint8)
        np.savez(folder / f"{name}.npz", images=pixels, labels=np.arange(12) % 3)
    model, _ = create_model("small_cnn", num_classes=3)
    save_file(model.state_dict(), folder / "net.safetensors")
    generator = StyleGenerator(GeneratorShape(size=28, latent=8, width=4))
    save_generator(generator, folder / "gan.safetensors", {})
    return folder


def command(places, *more, **changes):
    options = {
        "--model": "small_cnn", "--weights": places / "net.safetensors", "--id-train": places / "train.npz",
        "--id-val": places / "val.npz", "--id-test": places / "test.npz", "--far": f"odd={places / 'odd.npz'}",
        "--transform": "{size: 28}", "--detectors": "msp", "--variations": "affine,color", "--budget": "4",
        "--chains": "6", "--runs": "2", "--device": "cpu", "--output": "out", **changes,
    }  # fmt: skip
    chosen = [part for key, value in options.items() if value is not None for part in (key, value)]
    return ("attack", *chosen, *more)


@pytest.mark.slow
def test_an_attack_from_places(oodscope, places, tmp_path):
    gan = f"affine,color,gan={places / 'gan.safetensors'}"
    outcome = oodscope(*command(places, **{"--detectors": "msp,ebo", "--variations": gan}))
    assert outcome.status == 0, outcome
    assert "protocol attack" in outcome.out
    assert "MinRank" in outcome.out
    assert "ebo, color: search block 0" in outcome.err
    (folder,) = (tmp_path / "out" / "attacks").iterdir()
    assert {"run.json", "report.html", "table.csv", "table.md", "table.tex", "attack.json"} <= {
        file.name for file in folder.iterdir()
    }
    assert Attack.load(folder).variations == ["affine", "color", "gan"]
    again = oodscope(*command(places, "--json", **{"--detectors": "msp,ebo", "--variations": gan}))
    assert "search block" not in again.err
    assert json.loads(again.out)["run"]["protocols"] == ["attack"]
    table = oodscope("table", folder, "--format", "markdown", "--metric", "min_rank")
    assert "| odd, clean |" in table.out
    assert "| odd, gan |" in table.out
    assert "in percent" not in table.out
    stored = oodscope("table", "--store", "out/results.sqlite", "--protocol", "attack_transfer", "--format", "latex")
    assert "\\toprule" in stored.out


@pytest.mark.slow
def test_everything_of_a_search_by_command(oodscope, places, tmp_path, monkeypatch):
    """Samplers, settings, seeds, a generator of one's own, a judge, the found images; then evaluate on these."""
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, latents):\n"
        "        return torch.tanh(latents.sum(1)).view(-1, 1, 1, 1).expand(-1, 3, 28, 28)\n"
        "def build():\n    return Net()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    changes = {
        "--variations": "linf,epsilon=0.05,gan=python:mine:build,dimension=4,truncation=0.7",
        "--samplers": "random,mh,temperature=0.1",
        "--search-seeds": "2",
        "--judge": "small_cnn",
        "--judge-weights": places / "net.safetensors",
        "--chains": "12",
        "--far": f"odd={places / 'more.npz'}",
    }
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, size=(24, 28, 28, 3)).astype(np.uint8)
    np.savez(places / "more.npz", images=pixels, labels=np.arange(24) % 3, class_names=np.array(["a", "b", "c"]))
    outcome = oodscope(*command(places, **changes))
    assert outcome.status == 0 and "outliers: " not in outcome.out, outcome
    assert re.search(r"^estimate: about .* evaluations$", outcome.err, re.M)
    (folder,) = (tmp_path / "out" / "attacks").iterdir()
    found = Attack.load(folder)
    assert found.variations == ["linf,epsilon=0.05", "gan"]
    assert found.search("msp", "gan").settings["sampler"]["members"][1]["temperature"] == 0.1
    assert found.measurements.filter(metric="auroc_search_sd")
    # no network recognises noise: such a judge is not asked
    assert not found.measurements.filter(metric="valid_share")
    assert "it cannot say which found images are valid" in " ".join(outcome.out.split())
    # a finished attack is exported without another search; a half-written export is no obstacle
    (folder / "outliers.part" / "msp-gan" / "images").mkdir(parents=True)
    (folder / "outliers.part" / "msp-gan" / "images" / "00000.png").write_bytes(b"half")
    told = oodscope(*command(places, "--export", **changes))
    assert told.status == 0 and "search block" not in told.err, told
    assert f"{folder.name}/outliers: 2 sets, each for --near or --ood-train" in told.out
    assert sorted(each.name for each in folder.iterdir() if "outliers" in each.name) == ["outliers"]
    exported = next(each for each in (folder / "outliers").iterdir() if "linf" in each.name)
    again = oodscope(
        "evaluate", "--model", "small_cnn", "--weights", places / "net.safetensors", "--id-test", places / "test.npz",
        "--near", exported, "--transform", "{size: 28}", "--detectors", "msp", "--device", "cpu", "--output", "out",
    )  # fmt: skip
    assert again.status == 0, again


def test_presets():
    efforts = {name: AttackSettings(preset=name).options() for name in ("quick", "thorough", "paper")}
    assert [(each["budget"], each["chains"]) for each in efforts.values()] == [(200, 200), (2000, 5000), (2000, 5000)]
    own = AttackSettings(budget=750, chains=30).options()
    assert (own["budget"], own["chains"]) == (750, 30)
    clamped = AttackSettings(samplers=["mh"], boundary="clamp").options()["sampler"]
    assert clamped.boundary == "clamp"
    assert AttackSettings(boundary="clamp").options()["boundary"] == "clamp"


@pytest.mark.parametrize(
    ("change", "words", "status"),
    [
        ({"--preset": "quik"}, "'quik' is not one of 'quick', 'thorough', 'paper'. Did you mean 'quick'", 2),
        ({"--budget": "-3"}, "--budget", 2),
        ({"--judge": "small_cnn"}, "--judge small_cnn needs --judge-weights FILE", 2),
        ({"--judge-weights": "net.safetensors"}, "--judge-weights without --judge", 2),
        ({"--variations": "linf,epsilo=0.1"}, "linf: no parameter 'epsilo'. Did you mean 'epsilon'", 2),
        ({"--variations": "gan=python:no_such_package:build,dimension=4"}, "no_such_package", 2),
        ({"--samplers": "mh,stp=0.1"}, "mh: unknown setting 'stp'. Did you mean 'step'", 2),
        ({"--variations": "afine"}, "unknown variation 'afine'. Did you mean 'affine'", 2),
        ({"--variations": ","}, "no variation to attack with", 2),
        ({"--variations": "gan=nowhere.safetensors"}, "nowhere.safetensors", 1),
        ({"--detectors": "maha"}, "unknown detector 'maha'", 2),
        ({"--samplers": "mhh"}, "unknown sampler 'mhh'. Did you mean 'mh'", 2),
        ({"--boundary": "clip"}, "'clip' is not one of 'reflect', 'clamp'", 2),
        (
            {"--energy": "rank"},
            "is not one of 'canonical', 'standardised', 'released', 'rank_probit'. Did you mean 'rank_probit'?",
            2,
        ),
        ({"--on": "od"}, "unknown set of outliers 'od'. Did you mean 'odd'", 2),
        ({"--id-val": None}, "has no id_val; an attack standardises scores on it", 1),
        ({"--far": None}, "no OOD data: pass --near PLACE or --far PLACE", 2),
    ],
)
def test_mistakes_are_one_line(oodscope, places, change, words, status):
    outcome = oodscope(*command(places, **change))
    assert outcome.status == status, outcome
    lines = [line for line in outcome.err.splitlines() if line.startswith("oodscope: ")]
    assert len(lines) == 1
    assert words in lines[0]
    assert "Traceback" not in outcome.err


@pytest.mark.slow
def test_a_landscape_is_added_to_a_finished_attack(oodscope, places, tmp_path):
    """Nothing is searched again, the run keeps its name, and its figure can be drawn then, and not before."""
    assert oodscope(*command(places)).status == 0
    (folder,) = (tmp_path / "out" / "attacks").iterdir()
    before = Attack.load(folder)
    figure = ("figure", "evg-2", folder, "--output", tmp_path / "evg-2.svg")
    refused = oodscope(*figure)
    assert refused.status != 0
    assert "repeat the command of the attack with --landscape" in refused.err
    again = oodscope(*command(places, "--landscape"))
    assert again.status == 0, again
    assert "search block" not in again.err
    after = Attack.load(folder)
    assert after.landscape.variation == "affine"
    assert after.result.record == before.result.record
    assert [each.name for each in (tmp_path / "out" / "attacks").iterdir()] == [folder.name]
    assert oodscope(*figure).status == 0
    assert (tmp_path / "evg-2.svg").read_text().startswith("<?xml")


@pytest.mark.slow
def test_the_demo_ends_with_a_report_that_holds_its_attack(oodscope, tmp_path, monkeypatch):
    monkeypatch.setenv("OODSCOPE_CACHE", str(tmp_path / "cache"))
    options = ("--images-per-class", 5, "--epochs", 1, "--no-generated", "--output", tmp_path / "out", "--json")
    outcome = oodscope("demo", *options)
    assert outcome.status == 0, outcome
    told = json.loads(outcome.out)
    folder = Path(told["attack"]["folder"])
    assert {row["group"] for row in told["attack"]["measurements"]} == {"clean", "affine", "color", "any"}
    rows = told["trained"]["measurements"]
    assert {row["detector"] for row in rows if row["detector"]} == {"msp", "conf_branch"}
    assert {row["recipe"] for row in rows} == {"ConfBranch"}, "a row says training and score"
    report = Path(told["report"])
    assert report == tmp_path / "out" / "report.html"
    page = report.read_text()
    assert '<section id="attack-1">' in page and 'data-protocol="attack">' in page
    link = re.search(r'<a href="([^"]+)">All worst outliers', page)[1]
    assert (report.parent / link).resolve() == folder / "report.html"
    assert Attack.load(folder).detectors == ["msp", "knn", "vim"]
