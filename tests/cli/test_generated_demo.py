"""The demo's generated section: of too little it says so; otherwise a set is made, judged, linked and read again."""

import json
import re
from pathlib import Path

from oodscope.cli import judging_generated
from oodscope.data.generated import open_generated
from oodscope.results.generated import GeneratedStudy


def test_the_demo_judges_a_set_that_its_report_links(oodscope, tmp_path, monkeypatch):
    monkeypatch.setenv("OODSCOPE_CACHE", str(tmp_path / "cache"))
    home = tmp_path / "out" / "generated"

    def demo(**changes):
        plan = judging_generated.PLAN.model_copy(update={"pool": 200, "count": 40, **changes})
        monkeypatch.setattr(judging_generated, "PLAN", plan)
        options = ("--images-per-class", 5, "--epochs", 1, "--no-attack", "--output", tmp_path / "out", "--json")
        outcome = oodscope("demo", *options)
        assert outcome.status == 0, outcome
        return (Path(json.loads(outcome.out)["folder"]) / "report.html"), outcome.err

    report, errors = demo(window=(0.6, 0.69))
    assert "no generated set: none of 200 generated images" in errors
    assert "Generated outliers" not in report.read_text()

    report, _ = demo(window=(0.0, 0.6))
    link = re.search(r'<a href="([^"]+)">Generated outliers', report.read_text())[1]
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
    _, errors = demo(window=(0.0, 0.6))
    assert "extract" not in errors
    assert "train " not in errors
    assert list(home.glob("recombined-*")) == [made]
    assert sum(1 for _ in home.glob("judged-*")) == 1
