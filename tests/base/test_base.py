"""The little that all stations share."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oodscope.base import files
from oodscope.base.config import StrictModel, parse, read_yaml
from oodscope.base.errors import OodscopeError, StorageError, UnknownNameError, did_you_mean
from oodscope.base.files import atomic_path, cache_root, write_text
from oodscope.base.hashing import fingerprint
from oodscope.base.registry import Registry

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)


class TestFiles:
    def test_an_interrupted_write_leaves_the_old_file(self, tmp_path):
        target = tmp_path / "x"
        write_text(target, "old")
        with pytest.raises(RuntimeError), atomic_path(target) as temporary:
            temporary.write_text("half of the ne")
            raise RuntimeError("killed")
        assert target.read_text() == "old"
        assert os.listdir(tmp_path) == ["x"]

    def test_a_full_disk_is_one_clear_line_and_leaves_nothing(self, tmp_path):
        with pytest.raises(StorageError, match=r"cannot write .*x: the disk is full; free some space"):
            with atomic_path(tmp_path / "x"):
                raise OSError(errno.ENOSPC, "No space left on device")
        assert os.listdir(tmp_path) == []

    def test_a_really_full_disk(self):
        if not Path("/dev/full").exists():
            pytest.skip("this system has no /dev/full")
        with pytest.raises(StorageError, match="the disk is full"), files.storage_errors(Path("/dev/full")):
            with open("/dev/full", "wb", buffering=0) as stream:
                stream.write(b"x")

    def test_written_files_are_as_readable_as_others(self, tmp_path):
        (tmp_path / "plain").write_text("")
        write_text(tmp_path / "ours", "")
        assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_cache_follows_the_environment(self, monkeypatch):
        monkeypatch.delenv("OODSCOPE_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", "/some/cache")
        assert cache_root() == Path("/some/cache/oodscope")
        monkeypatch.setenv("OODSCOPE_CACHE", "/own")
        assert cache_root() == Path("/own")


class TestFingerprint:
    @pytest.mark.slow
    @given(JSON, JSON)
    def test_equal_iff_equal(self, a, b):
        same = json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)
        assert (fingerprint(a) == fingerprint(b)) == same

    @given(st.dictionaries(st.text(), st.integers(), min_size=2))
    def test_key_order_does_not_matter(self, mapping):
        assert fingerprint(mapping) == fingerprint(dict(reversed(mapping.items())))

    def test_arrays_count_with_type_and_shape(self):
        zeros = np.zeros(4, dtype=np.float32)
        versions = [zeros, zeros.reshape(2, 2), zeros.astype(np.int32), zeros.tobytes(), [0.0] * 4]
        assert len({fingerprint(version) for version in versions}) == 5

    def test_parts_do_not_run_into_each_other(self):
        assert fingerprint("ab", "c") != fingerprint("a", "bc")


class Inner(StrictModel):
    width: int = 1


class Outer(StrictModel):
    height: int
    inner: Inner = Inner()


class TestConfig:
    def test_a_misspelt_key_names_the_nearest(self):
        with pytest.raises(OodscopeError, match=r"^file: unknown key 'inner\.widht'\. Did you mean 'width'"):
            parse(Outer, {"height": 1, "inner": {"widht": 2}}, "file")

    def test_a_missing_key_and_a_wrong_type(self):
        with pytest.raises(OodscopeError, match="file: height: is missing"):
            parse(Outer, {}, "file")
        with pytest.raises(OodscopeError, match="file: height: .*valid integer"):
            parse(Outer, {"height": "tall"}, "file")

    def test_broken_yaml_names_the_line(self, tmp_path):
        (tmp_path / "x.yaml").write_text("a: 1\nb: [1,\n")
        with pytest.raises(OodscopeError, match=r"x\.yaml: not valid YAML in line 3"):
            read_yaml(tmp_path / "x.yaml")
        with pytest.raises(OodscopeError, match="no such file"):
            read_yaml(tmp_path / "y.yaml")

    def test_yaml_cannot_run_code(self, tmp_path):
        (tmp_path / "x.yaml").write_text("a: !!python/object/apply:os.system ['true']\n")
        with pytest.raises(OodscopeError, match="not valid YAML"):
            read_yaml(tmp_path / "x.yaml")


class TestRegistry:
    def test_names_suggest_and_registered_classes_win(self):
        registry = Registry("detector", dict)

        class Mine(dict):
            pass

        registry.register("knn", Mine)
        assert registry.get("knn") is Mine
        with pytest.raises(UnknownNameError, match="unknown detector 'kn'. Did you mean 'knn'"):
            registry.get("kn")

    def test_a_plugin_is_found_by_its_entry_point(self, tmp_path, monkeypatch):
        package = tmp_path / "someplugin-1.0.dist-info"
        package.mkdir()
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: someplugin\nVersion: 1.0\n")
        (package / "entry_points.txt").write_text("[oodscope.detectors]\nordered = collections:OrderedDict\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        registry = Registry("detector", dict)
        assert "ordered" in registry
        assert registry.get("ordered").__name__ == "OrderedDict"

    def test_a_class_of_the_wrong_kind_is_refused(self):
        with pytest.raises(OodscopeError, match="must be a subclass of dict"):
            Registry("detector", dict).register("list", list)


def test_did_you_mean_stays_silent_when_nothing_is_near():
    assert did_you_mean("xyz", ["msp", "knn"]) == ""
