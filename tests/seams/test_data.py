"""A source of images, a benchmark and a corruption, each through an evaluation to its report."""

import numpy as np
import pytest
import torch

import oodscope as oods
from oodscope.data.corruptions.batch import corrupt_batch
from oodscope.data.corruptions.catalog import CORRUPTIONS, members
from oodscope.data.images.locating import locate, stem_of
from oodscope.data.images.sourcespec import SOURCES
from oodscope.data.packaged import BENCHMARKS
from oodscope.runs.evaluation.run import Result
from tests.seams.world import command, done, evaluated, few_replicates, run_folder  # noqa: F401
from tests.tiny import benchmark, imageset


class TestSource:
    def test_by_python(self, tmp_path):
        images = locate("seeded:noise/7").open("seven", tmp_path)
        assert len(images) == 24 and stem_of("seeded:noise/7") == "7"
        bench = oods.own_benchmark(id_test="seeded:3", id_train="seeded:1", near={"noise": "seeded:noise/4"})
        assert [(role, each.name) for role, each in bench.members()][-1] == ("near", "noise")
        bench = benchmark(near=(images,))
        result = evaluated(bench=bench)
        assert "seven" in [column.name for column in result.table().columns]
        assert "seven" in {each.set for each in oods.compare(result)}
        assert "seven" in oods.write_report(result, tmp_path / "report.html").read_text(encoding="utf-8")

    @pytest.mark.slow
    def test_by_command(self, oodscope, tmp_path):
        sets = {"id_test": "seeded:3", "id_train": "seeded:1", "near": "fog=seeded:noise/4", "transform": "{size: 8}"}
        done(oodscope(*command(benchmark=None, **sets)))
        folder = run_folder(tmp_path)
        assert "fog" in done(oodscope("table", folder)) and "fog" in done(oodscope("compare", folder))
        done(oodscope("report", folder, "--output", "whole.html"))
        done(oodscope("leaderboard", "submit", folder, "--board", "b", "--method", "M", "--detector", "msp"))
        assert "recomputed" in done(oodscope("leaderboard", "verify", "b"))

    def test_by_registration(self, tmp_path):
        from oodscope_plugin.source import SeededSpec

        class Renamed(SeededSpec):
            source: str = "renamed"

        SOURCES.register("renamed", Renamed)
        text = 'name: n\nversion: "1"\nsets: {id_test: {source: renamed, seed: 3}}\n'
        (tmp_path / "b.yaml").write_text(text)
        assert len(oods.load_benchmark(tmp_path / "b.yaml").id_test) == 24

    def test_what_is_wrong_is_named(self, tmp_path):
        head = 'name: n\nversion: "1"\nsets:\n  id_test: '
        for text, problem in (
            ("{source: sedeed, seed: 3}", "sets.id_test: unknown source 'sedeed'. Did you mean 'seeded'"),
            ("{source: seeded, sed: 3}", "sets.id_test: source seeded: unknown key 'sed'. Did you mean 'seed'"),
        ):
            (tmp_path / "b.yaml").write_text(head + text)
            with pytest.raises(oods.OodscopeError, match=problem):
                oods.load_benchmark(tmp_path / "b.yaml")
        with pytest.raises(oods.OodscopeError, match=", seeded:PLACE.* Did you mean 'seeded'"):
            locate("sedeed:3")


class TestBenchmark:
    def test_by_python(self, tmp_path):
        bench = oods.load_benchmark("seeded-shapes")
        assert (bench.name, len(bench.id_train), [each.name for each in bench.near]) == (
            "seeded-shapes",
            48,
            ["static"],
        )
        result = evaluated(["msp", "ebo"], bench=bench)
        assert "static" in [column.name for column in result.table().columns]
        assert oods.compare(result)
        assert "seeded-shapes" in oods.write_report(result, tmp_path / "report.html").read_text(encoding="utf-8")
        with pytest.raises(oods.OodscopeError, match="unknown benchmark 'seeded-shape'. Did you mean 'seeded-shapes'"):
            oods.load_benchmark("seeded-shape")

    @pytest.mark.slow
    def test_by_command(self, oodscope, tmp_path):
        done(oodscope(*command()))
        folder = run_folder(tmp_path)
        assert "static" in done(oodscope("table", folder)) and "rain" in done(oodscope("compare", folder))
        assert "seeded-shapes" in done(oodscope("data", "list"))
        assert "static" in done(oodscope("data", "show", "seeded-shapes"))
        given = ("--board", "b", "--method", "MSP", "--detector", "msp")
        done(oodscope("leaderboard", "submit", folder, *given))
        done(oodscope("leaderboard", "build", "b", "--output", "site"))
        assert list((tmp_path / "site").glob("benchmarks/seeded-shapes*/standard.html"))

    def test_by_registration(self, tmp_path):
        (tmp_path / "mine.yaml").write_text(BENCHMARKS["seeded-shapes"].read_text().replace("seeded-shapes", "mine"))
        BENCHMARKS.register("mine", tmp_path / "mine.yaml")
        assert oods.load_benchmark("mine").name == "mine"
        with pytest.raises(oods.OodscopeError, match="benchmark 'text' must be the pathlib.Path of a YAML file"):
            BENCHMARKS.register("text", "mine.yaml")


class TestCorruption:
    def test_by_python(self, tmp_path):
        images = imageset("id_test", 80, 3)
        striped = oods.corrupt(images, "stripes", severity=5, name="striped")
        dark, plain = striped.images(np.array([0]))[0], images.images(striped.source.rows[:1])[0]
        assert (
            np.allclose(dark[:, ::2], np.rint(0.2 * plain[:, ::2]), atol=1) and (dark[:, 1::2] == plain[:, 1::2]).all()
        )
        result = evaluated(protocols=["full_spectrum"], bench=benchmark(csid=(striped,)))
        assert "striped" in [column.name for column in result.table().columns]
        assert oods.compare(result)
        assert "striped" in oods.write_report(result, tmp_path / "report.html").read_text(encoding="utf-8")

    @pytest.mark.slow
    def test_by_command(self, oodscope, tmp_path):
        done(oodscope(*command(protocols="full_spectrum")))
        folder = run_folder(tmp_path)
        assert "striped" in done(oodscope("table", folder))
        assert "striped" in Result.load(folder).record.sets
        done(oodscope("report", folder, "--output", "whole.html"))
        done(oodscope("leaderboard", "submit", folder, "--board", "b", "--method", "M", "--detector", "msp"))
        assert "recomputed" in done(oodscope("leaderboard", "verify", "b"))

    def test_by_registration(self):
        """And the groups of the published sets never hold it."""
        from oodscope_plugin.corruption import STRIPES

        CORRUPTIONS.register("registered_stripes", STRIPES)
        images = torch.full((1, 3, 8, 8), 0.5)
        assert torch.equal(corrupt_batch(images, "registered_stripes", 2), corrupt_batch(images, "stripes", 2))
        assert len(members("c")) == 15 and len(members("c_extra")) == 4 and members("stripes") == ("stripes",)
        with pytest.raises(oods.OodscopeError, match="unknown corruption 'strips'. Did you mean 'stripes'"):
            members("strips")
