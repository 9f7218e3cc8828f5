"""Windows and macOS, simulated: what their systems refuse or lack is refused or taken away here.

A handle that only reads cannot be flushed, a folder cannot be opened, a file that is open or mapped can be neither
replaced nor removed, a rename never overwrites; there are no hard links, no ``resource``, no ``fork`` and no list of
processors; two names that differ in case are one. These tests say what was simulated, not what was run there.
"""

import errno
import fcntl
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import oodscope as oods
from oodscope.base.errors import DataError
from oodscope.base.files import plain_name, slug, write_text
from oodscope.base.place import LocalPlace
from oodscope.execution.lookahead import cores
from oodscope.execution.plan import _check_owner
from oodscope.leaderboard.site.addresses import method_page, model_page, safe_name
from oodscope.leaderboard.site.render import _add_scores
from oodscope.serve import worker
from oodscope.serve.submissions import keep
from tests.tiny import benchmark, classifier

pytestmark = pytest.mark.slow


def held(path):
    """Whether this process has a file open or mapped."""
    wanted = os.path.realpath(path)
    for handle in Path("/proc/self/fd").iterdir():
        try:
            if str(handle.readlink()) == wanted:
                return True
        except OSError:
            continue
    return any(line.split()[5:6] == [wanted] for line in Path("/proc/self/maps").read_text().splitlines())


@pytest.fixture
def windows(monkeypatch):
    """The system calls of a POSIX system as Windows answers them."""
    if not Path("/proc/self/maps").exists():
        pytest.skip("which files are open is known on Linux only")
    fsync, replace, rename, unlink, opened = os.fsync, os.replace, os.rename, os.unlink, os.open

    def flush(handle):
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "a handle that only reads cannot be flushed")
        fsync(handle)

    def free(path):
        if held(path):
            raise PermissionError(errno.EACCES, "the file is in use", str(path))

    def refuse_folders(path, flags, *rest, **more):
        if not isinstance(path, int) and more.get("dir_fd") is None and Path(path).is_dir():
            raise PermissionError(errno.EACCES, "a folder cannot be opened", str(path))
        return opened(path, flags, *rest, **more)

    def over(source, target, **more):
        free(source)
        free(target)
        replace(source, target, **more)

    def to(source, target, **more):
        if Path(target).exists():
            raise FileExistsError(errno.EEXIST, "it is there", str(target))
        free(source)
        rename(source, target, **more)

    def away(path, **more):
        if more.get("dir_fd") is None:
            free(path)
        unlink(path, **more)

    for name, value in {"fsync": flush, "replace": over, "rename": to, "unlink": away, "open": refuse_folders}.items():
        monkeypatch.setattr(os, name, value)
    for name in ("link", "sched_getaffinity", "fork", "getuid"):
        monkeypatch.delattr(os, name)
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.setattr(worker, "get_all_start_methods", lambda: ["spawn"])


def test_the_simulation_refuses_what_windows_refuses(windows, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x")
    with path.open("rb") as stream:
        with pytest.raises(OSError, match="only reads"):
            os.fsync(stream.fileno())
        with pytest.raises(PermissionError, match="in use"):
            path.unlink()
    with pytest.raises(PermissionError, match="folder"):
        os.open(tmp_path, os.O_RDONLY)
    assert not hasattr(os, "link")


def test_a_run_is_evaluated_stored_saved_opened_and_reported(windows, tmp_path):
    for turn in ("one", "two"):  # the second reads what the first stored, and writes over its report
        store = oods.ActivationStore(tmp_path / "store")
        run = oods.evaluate(classifier(), benchmark(), ["msp", "knn"], "standard", store=store)
        folder = run.save(tmp_path / "runs" / turn)
        (opened,) = oods.open_runs(folder)
        assert str(opened.table()) == str(run.table())
        page = oods.write_report([opened], tmp_path / "report.html")
        assert page.stat().st_size > 10_000


def test_a_fitted_detector_is_saved_over_another(windows, tmp_path):
    bench = benchmark()
    scorer = oods.fit_scorer(classifier(), "msp", calibration=bench.id_val)
    for _ in range(2):
        scorer.save(tmp_path / "a.oodscope", include_weights=False)
        write_text(tmp_path / "a.txt", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.oodscope", "a.txt"]


def test_the_first_of_two_writers_stands(windows, tmp_path):
    place = LocalPlace(tmp_path / "p")
    assert place.create("a/b", b"one") and not place.create("a/b", b"two")
    assert place.read("a/b") == b"one"
    place.replace("a/b", b"three")
    assert place.read("a/b") == b"three" and place.remove("a/b") and not place.exists("a/b")


def test_an_entry_takes_its_place(windows, tmp_path):
    for name in ("ready", "again"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "entry.json").write_text(name)
    keep(tmp_path / "ready", tmp_path / "entry")
    with pytest.raises(Exception, match="never overwritten"):
        keep(tmp_path / "again", tmp_path / "entry")
    assert (tmp_path / "entry" / "entry.json").read_text() == "ready"


def test_scores_are_copied_where_they_cannot_be_linked(windows, tmp_path):
    (tmp_path / "board" / "e").mkdir(parents=True)
    (tmp_path / "board" / "e" / "scores.parquet").write_bytes(b"scores")
    (tmp_path / "site" / "entries" / "e").mkdir(parents=True)
    board = SimpleNamespace(standings=[SimpleNamespace(entry=SimpleNamespace(id="e", scores=object()))])
    _add_scores(board, tmp_path / "board", tmp_path / "site")
    assert (tmp_path / "site" / "entries" / "e" / "scores.parquet").read_bytes() == b"scores"


def test_workers_start_and_processors_are_counted(windows):
    assert cores() == os.cpu_count()
    started = worker.Worker(memory=2**34, file=2**30)
    try:
        assert started.call(os.path.basename, "a/b", seconds=120) == "b"
    finally:
        started.close()


def test_a_plan_runs_where_rights_say_nothing(windows, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text("{}")
    path.chmod(0o666)
    _check_owner(path)


@pytest.mark.parametrize("pair", [("KNN", "knn"), ("ResNet", "RESNET"), ("a", "A")])
def test_names_that_differ_in_case_are_two_files(pair):
    for address in (slug, safe_name, model_page):
        assert len({address(name).casefold() for name in pair}) == 2
    assert len({method_page(name) for name in pair}) == 1, "two spellings of one method share its page"


@pytest.mark.parametrize("name", ["CON", "nul.txt", "Com1", "a.", "a ", "a?b", "a|b", 'a"b', "a<b"])
def test_names_that_windows_cannot_store(name):
    with pytest.raises(DataError, match="Windows"):
        plain_name(name, "the name")
    assert slug(name) != name
