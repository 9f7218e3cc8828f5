"""Output by URL: what is written is published there, once, and what cannot be published is said before the work."""

import json
import uuid
from pathlib import Path

import pytest

import oodscope as oods
from oodscope.base.errors import OodscopeError, StorageError, UsageError
from oodscope.base.files import cache_root
from oodscope.base.place import open_place
from oodscope.jobs.checking import check_writable
from oodscope.jobs.mirror import MARKER, output_folder, publish, published_as
from oodscope.jobs.run import declared_file, execute_plan
from oodscope.jobs.units.divided import write_plan
from tests.jobs.project import job

pytest.importorskip("fsspec")


@pytest.fixture
def url():
    """A store that lives in this process, by fsspec."""
    return f"memory://bucket/{uuid.uuid4().hex}"


def names(url):
    return sorted(each.name for each in open_place(url).walk())


def test_what_is_new_or_changed_is_published_and_what_is_of_this_machine_stays(url):
    folder = Path(output_folder(url))
    for name in ("run/run.json", "page.html", "plans/a/plan.json", "results.sqlite", "results.sqlite-wal"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("one")
    assert publish(folder) == url and names(url) == [".oodscope", "page.html", "run/run.json"]
    (folder / "page.html").write_text("longer")
    publish(folder)
    assert open_place(url).read("page.html") == b"longer"
    assert published_as(folder / "run") == f"{url}/run" and published_as(Path("elsewhere/run")) == "elsewhere/run"


def test_a_folder_is_itself(tmp_path):
    assert output_folder(str(tmp_path)) == str(tmp_path) and publish(tmp_path) is None


def test_an_unknown_store_is_refused_before_the_work(tmp_path):
    with pytest.raises(OodscopeError, match="s4://bucket: not a place that can be opened"):
        oods.run(job(tmp_path, output="s4://bucket"))
    with pytest.raises(StorageError, match="a URL is no folder"):
        check_writable(Path("s3://bucket/x"))


def test_a_cache_by_url_names_the_variables_that_may_be(monkeypatch):
    monkeypatch.setenv("OODSCOPE_CACHE", "s3://lab/cache")
    with pytest.raises(UsageError, match="OODSCOPE_ACTIVATIONS=s3://lab/cache/activations"):
        cache_root()


@pytest.mark.slow
def test_a_run_and_a_plan_are_published(tmp_path, url):
    changes = {"detectors": ["msp"], "protocols": ["standard"], "output": url}
    oods.run(job(tmp_path / "a", **changes))
    run = [name for name in names(url) if name.endswith("/run.json")]
    assert len(run) == 1 and not any(MARKER in name for name in names(url))
    assert json.loads(open_place(url).read(run[0]))
    plan = write_plan(declared_file(job(tmp_path / "b", **changes)), tmp_path / "plan")
    execute_plan(plan.folder, None)
    assert len([name for name in names(url) if name.endswith("/run.json")]) == 2
