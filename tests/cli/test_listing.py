"""`oodscope list` answers at once, from a catalogue that is true."""

import json
import subprocess
import sys

import pytest

from oodscope.base.catalog import catalog


def test_the_committed_catalogue_is_what_the_classes_say():
    from oodscope.cli.catalog import build_catalog

    built = json.loads(json.dumps(build_catalog()))
    assert built == {
        section: catalog(section)
        for section in (
            *("detectors", "protocols", "runs", "metrics", "benchmarks"),
            *("models", "corruptions", "variations", "figures"),
        )
    }, "run: make catalog"


@pytest.mark.parametrize("kind", ["detectors", "benchmarks", "models", "corruptions", "variations", "figures"])
def test_lists_names_and_json(oodscope, kind):
    table = oodscope("list", kind)
    listed = json.loads(oodscope("list", kind, "--json").out)
    assert listed.keys() == catalog(kind).keys()
    assert all(name in table.out for name in listed)


@pytest.mark.slow
def test_nothing_heavy_is_imported_for_help_and_lists():
    script = (
        "import sys; from oodscope.cli.app import app\n"
        "try: app(['list', 'detectors'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'numpy', 'pandas', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_unknown_kind(oodscope):
    outcome = oodscope("list", "detector")
    assert outcome.status == 2
    assert "detectors" in outcome.err


def test_version_and_help(oodscope):
    from oodscope import __version__

    assert oodscope("--version").out.strip() == f"oodscope {__version__}"
    assert "evaluate" in oodscope("--help").out
