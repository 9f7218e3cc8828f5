"""The demo's generated section: of too little it says so; otherwise a set is made, judged, linked and read again."""

import json
import re
from pathlib import Path

import pytest

from oodscope.cli.demo import generated as judging_generated
from oodscope.data.generated.files import open_generated
from oodscope.execution.progress import SILENT
from oodscope.jobs.job import read_job
from oodscope.jobs.run import find_job
from oodscope.runs.generated.run import GeneratedStudy


@pytest.mark.slow
def test_the_demo_judges_a_set_that_its_report_links(oodscope, tmp_path, monkeypatch):
    monkeypatch.setenv("OODSCOPE_CACHE", str(tmp_path / "cache"))
    home = tmp_path / "out" / "generated"

    def demo(**changes):
        plan = judging_generated.PLAN.model_copy(update={"pool": 200, "count": 40, **changes})
        monkeypatch.setattr(judging_generated, "PLAN", plan)
        few = ("--images-per-class", 5, "--epochs", 1, "--no-attack", "--no-training")
        options = (*few, "--output", tmp_path / "out", "--json")
        outcome = oodscope("demo", *options)
        assert outcome.status == 0, outcome
        return Path(json.loads(outcome.out)["report"]), outcome.err

    report, errors = demo(window=(0.6, 0.69))
    assert "no generated set: none of 200 generated images" in errors
    assert "generated-1" not in report.read_text()

    report, _ = demo(window=(0.0, 0.6))
    assert report == tmp_path / "out" / "report.html" and '<section id="generated-1">' in report.read_text()
    link = re.search(r'<a href="([^"]+)">All of the generated set', report.read_text())[1]
    page = (report.parent / link).resolve()
    assert page.is_file()
    study = GeneratedStudy.load(page.parent)
    assert study.sanity.near() == ["recombined"]
    assert study.real == ["near_letters", "photographs", "digits", "textures"]
    check = study.sanity.of("recombined")
    # every image is where the makers put it, and judges are others
    assert check.kept == check.n == 40
    assert not set(study.sanity.judges.values()) & set(study.sanity.makers.values())
    assert study.circular == []
    (made,) = home.glob("recombined-*")
    assert len(open_generated(made)) == 40

    # what was finished is read; a set that was begun and killed is made again
    made.rename(made.with_name(f"{made.name}.part"))
    job = read_job(find_job("demo"))
    (recipe,) = job.model.train
    model = job.model.model_copy(update={"train": (recipe.model_copy(update={"epochs": 1}),)})
    job = job.model_copy(update={"output": str(tmp_path / "out"), "images_per_class": 5, "model": model})
    again, folder = judging_generated.judge_recombined(job, SILENT)
    assert folder == page.parent
    assert again.sanity == study.sanity
    assert list(home.glob("recombined-*")) == [made]
