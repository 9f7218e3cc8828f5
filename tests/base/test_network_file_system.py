"""SQLite on a network file system is refused before a row can be lost."""

from pathlib import Path

import pytest

from oodscope.base.errors import StorageError
from oodscope.base.files import network_file_system
from oodscope.results.store import store

MOUNTS = r"""/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/scratch xfs rw 0 0
lab:/a\040b /mnt/a\040b lustre rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/tmp/results.sqlite", None),
        ("/home/me/results.sqlite", "nfs4"),
        ("/homes/me", None),
        ("/home/scratch/me", None),
        ("/mnt/a b/x", "lustre"),
    ],
)
def test_the_longest_mount_decides(tmp_path, path, kind):
    (tmp_path / "mounts").write_text(MOUNTS)
    assert network_file_system(Path(path), tmp_path / "mounts") == kind


def test_where_nothing_is_known_nothing_is_refused(tmp_path):
    assert network_file_system(Path("/home"), tmp_path / "none") is None


def test_sqlite_on_a_network_file_system_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "network_file_system", lambda path: "nfs4")
    with pytest.raises(StorageError, match="OODSCOPE_STORE=postgresql"):
        store.ResultStore(tmp_path / "results.sqlite")
