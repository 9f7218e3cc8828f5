"""The help of every command fits 80 columns, and every command has the same short options."""

import os
import re
import shlex
import subprocess
import sys
from typing import get_args

import pytest
import typer

from oodscope.cli import choices
from oodscope.cli.examples import EXAMPLES
from tests.cli.commands import every_command, parse

COMMANDS = every_command()


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")


@pytest.mark.parametrize("words", [(), ("data",), ("generate",), ("leaderboard",), ("serve", "token")], ids=" ".join)
def test_summaries_of_commands_stand_whole_in_one_line(oodscope, words):
    shown = oodscope(*words, "-h").out
    assert "…" not in shown and "..." not in shown.replace("[ARGS]...", "")
    assert max(map(len, shown.splitlines())) <= 80
    for path, command in COMMANDS.items():
        *group, name = path
        if tuple(group) == words:
            summary = command.help.partition("\n")[0]
            assert re.search(rf"│ {name} +{re.escape(summary)} +│", shown), f"{path}: {summary!r} does not fit"


def test_commands_are_listed_in_groups(oodscope):
    shown = oodscope("--help").out
    panels = re.findall(r"╭─ ([A-Z][a-z ]+) ─", shown)
    assert panels == ["Options", "Start", "Evaluate", "Read results", "Many machines", "Make", "Deploy", "Share"]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_short_options_and_examples(oodscope, path):
    shown = oodscope(*path, "-h").out
    options = {name for option in COMMANDS[path].params for name in option.opts}
    assert {"-q", "--quiet", "-v", "--verbose"} <= options
    assert "--output" not in options or "-o" in options
    assert "─ Execution ─" in shown and "…" not in shown and "list[" not in shown and "<bool>" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert " ".join(path) in EXAMPLES and "Examples:" in shown


@pytest.mark.parametrize("path", EXAMPLES)
def test_examples_are_real_commands_that_fit(path):
    for line in EXAMPLES[path].strip().splitlines():
        program, *arguments = shlex.split(line)
        assert program == "oodscope" and arguments[: len(path.split())] == path.split()
        assert len(line.strip()) <= 78, f"{line.strip()!r} is broken over lines"
        parse(arguments)


@pytest.mark.parametrize("wrong", [["evaluate", "--modle", "x"], ["evaluat"], ["power"], ["train", "--seeds"]])
def test_the_parser_of_these_tests_refuses_what_the_command_line_refuses(wrong):
    with pytest.raises(typer.BadParameter.__mro__[2]):
        parse(wrong)


def test_enumerations_are_those_of_the_jobs():
    from oodscope.generation.near.recipe import NearRecipe
    from oodscope.generation.sets.plan import Method
    from oodscope.generation.variations.domain import Boundary
    from oodscope.jobs.crossval import CrossvalJob
    from oodscope.jobs.fit import FitSettings
    from oodscope.leaderboard.records.entry import Track
    from oodscope.metrics.metric import Tuning
    from oodscope.runs.attack.plan import EnergyName
    from oodscope.runs.crossval.plan import PRESETS, CrossValidationPlan

    def of(model, field):
        return set(get_args(model.model_fields[field].annotation))

    assert set(choices.Tune) == set(get_args(Tuning))
    assert set(choices.Track) == set(get_args(Track)) == set(choices.TRACK_SUMMARIES)
    assert set(choices.Energy) == set(get_args(EnergyName))
    assert set(choices.Boundary) == set(get_args(Boundary))
    assert set(choices.NearMethod) == set(get_args(Method))
    assert set(choices.NearNetwork) == of(NearRecipe, "network")
    assert set(choices.Backbone) == of(CrossvalJob, "backbone")
    assert set(choices.CellTest) == of(CrossValidationPlan, "test")
    assert set(choices.CrossvalPreset) == set(PRESETS)
    assert set(choices.Guarantee) == of(FitSettings, "guarantee")


@pytest.mark.parametrize(
    ("section", "begun", "expected"),
    [
        ("detectors", "kn", ["knn"]),
        ("detectors", "msp,kn", ["msp,knn"]),
        ("detectors", "zzz", []),
        ("benchmarks", "cifar10", ["cifar10", "cifar100"]),
        ("metrics", "fpr95_id", ["fpr95_id_positive"]),
    ],
)
def test_names_complete_also_after_a_comma(section, begun, expected):
    assert set(expected) <= set(choices.complete(section)(begun))
    assert all(name.startswith(begun) for name in choices.complete(section)(begun))


@pytest.mark.slow
def test_the_shell_completes_commands_options_and_choices():
    """Asks as a shell does, through the environment."""

    def completed(line):
        environment = {"_OODSCOPE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        code = "import sys; sys.argv[0] = 'oodscope'; from oodscope.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, timeout=120
        )
        return done.stdout.split()

    assert completed("oodscope eva") == ["evaluate"]
    assert completed("oodscope evaluate --tune o") == ["ood_val"]
    assert "knn" in completed("oodscope evaluate --detectors kn")
