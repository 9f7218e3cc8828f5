"""Which tests keep closed what was open in the first version (findings H1 to H13), so that none goes unseen."""

from pathlib import Path

import pytest

from tests.hostile.test_corpus import CASES

ROOT = Path(__file__).parents[2]
BOARD, SUBMITTERS = "tests/leaderboard/test_findings.py", "tests/serve/test_submitters.py"
CORPUS = {case.name for case in CASES}

CLOSED = {
    "H1 one accepted submission freezes the board": (
        f"{BOARD}::TestReservedNames",
        f"{SUBMITTERS}::test_what_cannot_be_built_is_not_kept",
        f"{SUBMITTERS}::test_a_published_id_is_refused",
        "options: submit under a reserved id",
        "options: submit under a published id",
    ),
    "H2 predictions and validation rows are not computed again": (f"{BOARD}::TestReExecution",),
    "H3 a benchmark's name writes outside the output": ("benchmark: name with a path", "benchmark: name absolute"),
    "H4 hand-picked parameters count as defaults": (f"{BOARD}::TestDefaults",),
    "H5 two methods with one group are one row": (f"{BOARD}::TestFamilies",),
    "H6 numbers without proof take the first row": (f"{BOARD}::TestReportedOnly",),
    "H7 the date of a record is believed": (f"{BOARD}::TestStamp",),
    "H8 one token, no trail, no quota, slow senders block all": (
        f"{SUBMITTERS}::TestTokens",
        f"{SUBMITTERS}::test_an_accepted_entry_is_stamped_logged_and_shown",
        f"{SUBMITTERS}::test_a_slow_sender_keeps_nobody_else_out",
        f"{SUBMITTERS}::test_the_deadline_grows_with_the_size",
        f"{SUBMITTERS}::test_quotas",
    ),
    "H9 an EPS named .png starts a program": ("image: EPS", "list: archive of EPS"),
    "H10 repeated YAML keys drop sets": ("job: repeated key", "benchmark: repeated nested key"),
    "H11 a damaged journal stops every run": (
        "tests/hostile/fuzzing.py::crossval_journal",
        "tests/hostile/fuzzing.py::search_journal",
    ),
    "H12 lower bounds admit known holes": (
        "tests/base/test_supply_chain.py::test_versions_with_known_holes_are_not",
        "tests/base/test_supply_chain.py::test_a_server_library_whose_internals_we_subclass_is_capped",
    ),
    "H13 tracebacks": (
        *("options: seed -1", "weights: garbage", "arrays: 30 TB", "job: transform size 10^8", "job: deep list"),
        *("run: deep", "job: model that raises", "artefact: no proof", "artefact: a hub network"),
        *("artefact: an escape sequence in its name", "benchmark: braces beyond reason"),
        "options: output out is below a file",
    ),
}
"""By finding: tests as file::name, and cases of the corpus by their names."""


def test_every_finding_is_listed():
    assert [name.split()[0] for name in CLOSED] == [f"H{number}" for number in range(1, 14)]


@pytest.mark.parametrize("finding", CLOSED)
def test_its_tests_are_there(finding):
    for name in CLOSED[finding]:
        file, found, function = name.partition("::")
        if not found:
            assert name in CORPUS
            continue
        source = (ROOT / file).read_text(encoding="utf-8")
        assert f"\ndef {function}(" in source or f"\nclass {function}:" in source, name
