"""One miniature of all datasets, copied where a test wants to damage it."""

import shutil

import pytest

from tests.data.public.miniature import Miniature


@pytest.fixture(scope="package")
def pristine(tmp_path_factory):
    """The miniature as it was written: nothing verified yet. Do not change it."""
    with pytest.MonkeyPatch.context() as patch:
        yield Miniature(tmp_path_factory.mktemp("miniature"), patch)


@pytest.fixture
def own_root(pristine, tmp_path):
    """A root of the test's own, with the same files, nothing verified."""
    return shutil.copytree(pristine.root, tmp_path / "root", ignore=shutil.ignore_patterns(".oodscope"))
