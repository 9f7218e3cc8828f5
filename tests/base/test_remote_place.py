"""Object stores: of many writers one wins, and plans and activations lie there as in a folder."""

import os
import threading
import uuid
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import OodscopeError
from oodscope.base.place import LocalPlace, RemotePlace, is_url, open_place
from oodscope.execution.plan import WorkPlan
from oodscope.execution.units import Unit
from oodscope.execution.work import work
from tests.tiny import classifier, imageset

pytest.importorskip("fsspec")


@pytest.fixture
def memory():
    """A store that lives in this process, by fsspec."""
    return f"memory://bucket/{uuid.uuid4().hex}"


def test_urls_and_folders_are_told_apart(tmp_path):
    assert is_url("s3://bucket/folder") and is_url("gs://b") and not is_url("runs/a") and not is_url("c://x")
    assert isinstance(open_place(tmp_path), LocalPlace) and isinstance(open_place(str(tmp_path)), LocalPlace)


@pytest.mark.parametrize("url", ["nonsense://x/y", "s4://bucket"])
def test_an_unknown_scheme_is_one_line(url):
    with pytest.raises(OodscopeError, match="not a place that can be opened"):
        open_place(url)


def test_the_first_writer_wins(memory):
    place = RemotePlace(memory)
    assert place.create("a/b", b"one") and not place.create("a/b", b"two")
    assert place.read("a/b") == b"one" and place.exists("a/b") and not place.exists("a")
    place.replace("a/b", b"three")
    assert place.read("a/b") == b"three" and list(place.list("a")) == ["a/b"] and not list(place.list("c"))
    assert place.remove("a/b") and not place.exists("a/b") and place.remove("a/b")


def test_a_local_copy_is_the_published_file(memory):
    place = RemotePlace(memory)
    place.create("x/file", b"content")
    path = place.local("x/file")
    assert path.read_bytes() == b"content" and place.local("x/file") == path
    path.write_bytes(b"cut")
    assert place.local("x/file").read_bytes() == b"content"


def test_a_plan_lies_in_an_object_store(memory, tmp_path):
    def do(unit, plan):
        return {"number": unit.spec["number"]}

    units = [Unit(kind="a", spec={"number": number}) for number in range(3)]
    WorkPlan.create(memory, units, output=tmp_path)
    assert not WorkPlan(memory).status().done
    work(WorkPlan(memory), do)
    status = WorkPlan(memory).status()
    assert status.finished and not status.running
    assert WorkPlan(memory).record(units[2].name)["number"] == 2
    with pytest.raises(OodscopeError, match="by hand"):
        WorkPlan(memory).local_folder()


def test_activations_lie_in_an_object_store(memory):
    known, images = classifier(), imageset("a", 40, 0)
    here = ActivationStore().extract(known, images)
    first, second = ActivationStore(memory), ActivationStore(memory)
    there = first.extract(known, images)
    again = second.extract(known, images)
    assert first.forwarded == 40 and second.forwarded == 0
    for name in ("logits", "features"):
        assert np.array_equal(here[name].numpy(), there[name].numpy())
        assert np.array_equal(here[name].numpy(), again[name].numpy())


@pytest.fixture
def s3(monkeypatch):
    """A bucket of moto's server on loopback."""
    pytest.importorskip("s3fs")
    moto = pytest.importorskip("moto.server")
    serving = pytest.importorskip("werkzeug.serving")
    # one request at a time: moto looks whether a name exists and then writes, which two threads may do at once
    application = moto.DomainDispatcherApplication(moto.create_backend_app)
    server = serving.make_server("127.0.0.1", 0, application, threaded=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    import s3fs

    s3fs.S3FileSystem(skip_instance_cache=True).mkdir("bucket")
    yield "s3://bucket/place"
    server.shutdown()
    thread.join(10)


def race(where, which, rounds, start):
    """Publish other bytes than the others under each name, all at the same moment; the names that were won."""
    place, won = open_place(where), []
    for number in range(rounds):
        start.wait(120)
        if place.create(f"shard-{number}", bytes([which]) * 4096):
            won.append(number)
    return won


def winners(where, rounds):
    """Who published each name, of eight processes that race for every one of them."""
    fork = get_context("fork")
    with fork.Manager() as manager, ProcessPoolExecutor(8, mp_context=fork) as pool:
        start = manager.Barrier(8)
        won = list(pool.map(race, [where] * 8, range(8), [rounds] * 8, [start] * 8))
    found = {number: which for which, numbers in enumerate(won) for number in numbers}
    assert sum(map(len, won)) == rounds == len(found), "each name has one winner"
    return found


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [10, pytest.param(1000, marks=pytest.mark.soak)])
def test_of_eight_racing_writers_one_wins(s3, rounds):
    place = RemotePlace(s3)
    for number, which in winners(s3, rounds).items():
        assert place.read(f"shard-{number}") == bytes([which]) * 4096


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [30, pytest.param(1000, marks=pytest.mark.soak)])
def test_of_eight_racing_processes_one_wins(tmp_path, rounds):
    for number, which in winners(tmp_path, rounds).items():
        assert (tmp_path / f"shard-{number}").read_bytes() == bytes([which]) * 4096
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
