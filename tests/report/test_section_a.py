"""Which tests keep right what pages of the first version showed wrongly (A1 to A11), so that none goes unseen.

``benchmarks/page_findings.py`` asks the pages of both versions; every finding was seen on those of 0.1
(``docs/results/page-findings.md``).
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAPER, VERDICT, ADVICE = "browser/test_on_paper.py", "report/test_verdict.py", "runs/comparison/test_advice.py"

MENDED = {
    "A1 judges that cannot read say yes": (
        "runs/generated/test_generated.py::test_judges_that_cannot_read_decide_nothing",
        "runs/generated/test_generated.py::test_claims_are_counted",
    ),
    "A2 the verdict drops the doubts of its numbers": (
        f"{VERDICT}::test_a_leader_keeps_its_doubts_wherever_it_is_named",
    ),
    "A3 the worst that is known is not the worst": (
        f"{VERDICT}::test_what_speaks_against_a_leader_is_the_worst_that_was_measured",
    ),
    "A4 passes through the network cost nothing": (
        "report/test_score_plots.py::test_further_passes_stand_behind_all_arithmetic",
        f"{ADVICE}::test_a_pass_through_the_network_costs_more_than_arithmetic",
    ),
    "A5 printing loses plots, pictures, columns and ink": (
        f"{PAPER}::test_every_plot_is_drawn_before_the_printer_looks",
        f"{PAPER}::test_pictures_and_shading_are_printed",
        f"{PAPER}::test_no_table_and_no_plot_is_cut",
        f"{PAPER}::test_a_dark_reader_prints_dark_letters_on_white",
        f"{PAPER}::test_what_needs_a_pointer_is_not_printed",
    ),
    "A6 columns are hidden without a hint": (
        f"{PAPER}::test_hidden_columns_are_announced_and_reached_by_keyboard",
        "browser/test_accessibility.py::test_the_keyboard_reaches_everything_that_scrolls",
    ),
    "A7 detectors share a look in the legend": (f"{PAPER}::test_no_two_detectors_share_a_look",),
    "A8 one detector has many colours": (f"{PAPER}::test_a_detector_has_one_colour_in_the_whole_file",),
    "A10 no warning at chance": (
        f"{ADVICE}::test_a_classifier_at_chance_stops_the_advice",
        f"{ADVICE}::test_detectors_at_chance_stop_the_advice",
        "report/test_crossval_page.py::test_a_study_at_chance_says_so",
    ),
    "A11 an audit without denominators": (
        "runs/audit/test_audit.py::test_what_is_shared_is_counted_with_its_denominator",
    ),
}
"""By finding: tests as file::name. A9 was a promise of the README, which now names the machine."""


def test_every_finding_is_listed():
    assert [name.split()[0] for name in MENDED] == [f"A{n}" for n in range(1, 12) if n != 9]


@pytest.mark.parametrize("finding", MENDED)
def test_its_tests_are_there(finding):
    for name in MENDED[finding]:
        path, _, function = name.partition("::")
        assert re.search(rf"def {function}\(", (ROOT / "tests" / path).read_text(encoding="utf-8")), name
