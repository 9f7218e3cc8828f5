"""On a disk that is really full: one clear line, and nothing that looks like a result."""

import subprocess

import pytest

FEW = ("--no-attack", "--no-training")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes; only some systems let a test make one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this system does not let a test mount a small file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("full", ["cache", "output"])
def test_a_full_disk_stops_the_run_with_one_line(oodscope, small_disk, tmp_path, monkeypatch, full):
    places = {"cache": tmp_path / "cache", "output": tmp_path / "out"} | {full: small_disk / "place"}
    if full == "output":
        (small_disk / "ballast").write_bytes(b"x" * (2 * 2**20 - 8192))
    monkeypatch.setenv("OODSCOPE_CACHE", str(places["cache"]))
    outcome = oodscope("demo", *FEW, "--images-per-class", 40, "--epochs", 1, "--output", places["output"])
    assert outcome.status == 1, outcome
    last = outcome.err.splitlines()[-1]
    assert last.startswith("oodscope: ")
    assert "disk is full" in last
    assert "Traceback" not in outcome.err
    assert not list(places["output"].rglob("run.json"))
    (small_disk / "ballast").unlink(missing_ok=True)
    monkeypatch.setenv("OODSCOPE_CACHE", str(tmp_path / "roomy"))
    again = oodscope("demo", *FEW, "--images-per-class", 5, "--epochs", 1, "--output", tmp_path / "roomy-out")
    assert again.status == 0, again
