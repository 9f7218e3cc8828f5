"""One image in, one verdict out, for many at once; whatever else comes in is refused in one line."""

from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

import oodscope as oods
from tests import tiny

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from oodscope.serve.verdict import VerdictLimits, VerdictServer


@pytest.fixture(scope="module")
def scorer():
    return oods.fit_scorer(tiny.classifier(), "msp", tiny.benchmark().id_val)


@pytest.fixture(scope="module")
def pictures():
    return tiny.benchmark().id_test.images(range(20))


def encoded(picture):
    stream = BytesIO()
    Image.fromarray(picture).save(stream, "PNG")
    return stream.getvalue()


def test_fifty_clients_get_their_own_verdicts(scorer, pictures):
    expected = scorer.predict(list(pictures))
    files = [encoded(picture) for picture in pictures]
    with TestClient(VerdictServer(scorer).application()) as client, ThreadPoolExecutor(50) as crowd:
        answers = list(crowd.map(lambda number: client.post("/predict", content=files[number % 20]), range(100)))
    for number, answer in enumerate(answers):
        wanted = expected[number % 20]
        assert answer.status_code == 200
        found = answer.json()
        assert (found["class_name"], found["accepted"]) == (wanted.class_name, wanted.accepted)
        assert found["score"] == pytest.approx(wanted.score, rel=1e-5)
    assert answers[0].headers["x-content-type-options"] == "nosniff"


def test_what_it_promises_and_what_it_refuses(scorer, pictures):
    limits = VerdictLimits(bytes=2**20, together=1)
    with TestClient(VerdictServer(scorer, limits).application(), raise_server_exceptions=False) as client:
        about = client.get("/").json()
        assert about["detector"] == "msp" and "nothing is promised about outliers" in about["guarantee"]
        for body, status, words in (
            (b"", 400, "no image"),
            (b"no image", 422, "unreadable image in the request: cannot identify its format"),
            (b"x" * (2**20 + 1), 413, "1 MiB at most"),
        ):
            refused = client.post("/predict", content=body)
            assert refused.status_code == status and words in refused.json()["error"]
        assert client.get("/predict").status_code == 405
        assert client.get("/elsewhere").status_code == 404
        good = client.post("/predict", content=encoded(pictures[0]))
        assert good.json()["score"] == scorer.predict(pictures[0])[0].score  # alone: the same digits


def test_a_crowd_that_waits_too_long_is_turned_away_and_a_failure_is_answered(scorer, pictures, monkeypatch):
    with TestClient(VerdictServer(scorer, VerdictLimits(waiting=0)).application()) as client:
        turned = client.post("/predict", content=encoded(pictures[0]))
        assert turned.status_code == 503 and turned.headers["retry-after"] == "1"
    broken = VerdictServer(scorer)
    monkeypatch.setattr(scorer, "predict", lambda images: np.linalg.inv(np.zeros((2, 2))))
    with TestClient(broken.application(), raise_server_exceptions=False) as client:
        for _ in range(2):  # and it goes on
            failed = client.post("/predict", content=encoded(pictures[0]))
            assert failed.status_code == 500 and "LinAlgError" in failed.json()["error"]
