"""A stream detector, from streams of images to the report of its run."""

import numpy as np
import pytest

import oodscope as oods
from oodscope.detectors.streaming import STREAM_DETECTORS, create_entry
from oodscope.results.opening import open_runs
from oodscope.runs.evaluation.extraction import FromNetwork
from oodscope.runs.stream.protocol import StreamProtocol
from oodscope.runs.stream.schedule import Schedule
from oodscope.runs.stream.stream import stream
from tests.seams.world import command, done
from tests.tiny import benchmark, classifier

PLAN = Schedule(share=0.3, images=20, batch=4)


def streamed(*detectors):
    extraction = FromNetwork(classifier(), oods.ActivationStore())
    return stream(extraction, benchmark(), detectors, [PLAN], draws=2, protocol=StreamProtocol(rolling=5))


class TestStreamDetector:
    def test_by_python(self, tmp_path):
        run = streamed("msp", "running_range")
        assert {row.name: row.section for row in run.table().rows} == {
            "msp": "constant",
            "running_range": "transductive",
        }
        assert "running_range" in oods.write_report(run, tmp_path / "report.html").read_text(encoding="utf-8")
        run.save(tmp_path / "run")
        assert open_runs(tmp_path)[0].measurements == run.measurements

    @pytest.mark.slow
    def test_by_command(self, oodscope, tmp_path):
        plan = {"schedule": "share=0.3,images=20,batch=4", "draws": "2", "rolling": "5"}
        done(oodscope(*command("stream", detectors="msp,running_range", **plan)))
        (folder,) = (path.parent for path in tmp_path.glob("runs/*/run.json"))
        assert "running_range" in done(oodscope("table", folder))
        outcome = oodscope(*command("stream", detectors="msp,running_rnge", **plan))
        assert outcome.status == 2 and "running_range" in outcome.err

    def test_by_registration(self):
        class Doubled(type(create_entry("running_range"))):
            name = "running_range_doubled"

            def _judge(self, *images):
                return 2 * super()._judge(*images)

        STREAM_DETECTORS.register("running_range_doubled", Doubled)
        scores = streamed("msp", "running_range", "running_range_doubled").scores
        assert np.allclose(2 * scores.scores("running_range"), scores.scores("running_range_doubled"))
