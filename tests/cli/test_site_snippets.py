"""What the site tells readers to type works: the steps of a submission are run, every other command is parsed."""

import shlex
from shutil import copytree

import pytest

from oodscope.leaderboard.published.table import published_standings
from oodscope.leaderboard.records.board import Board
from oodscope.leaderboard.site.render import render_pages
from tests.cli.commands import parse
from tests.leaderboard.leaderboard_world import few_replicates  # noqa: F401
from tests.leaderboard.leaderboard_world import run as evaluation
from tests.report.reading import read


@pytest.fixture(scope="module")
def pages():
    kept = [each for each in published_standings() if each.entry.method in ("KNN", "MSP")]
    return {name: read(text) for name, text in render_pages(Board(tuple(kept))) if name.endswith(".html")}


def snippets(page):
    """Every command of a page, as words."""
    lines = [line for block in page.all("pre") for line in block.text.splitlines()]
    return [shlex.split(line) for line in lines if line.startswith("oodscope ")]


def test_every_command_of_the_site_is_one_of_the_command_line(pages):
    found = [words for page in pages.values() for words in snippets(page)]
    assert len(found) > 10 and {"demo", "evaluate", "leaderboard"} <= {words[1] for words in found}
    for words in {tuple(words) for words in found}:
        parse(list(words[1:]))


@pytest.mark.slow
def test_the_steps_of_a_submission_run(pages, oodscope, tmp_path):
    (tmp_path / "runs").mkdir()
    copytree(evaluation(), tmp_path / "runs" / "glyphs-1")  # what the first step, the demo, leaves
    steps = [words for words in snippets(pages["about.html"]) if words[1] == "leaderboard"]
    ran = []
    for words in steps:
        if any("cifar10" in word for word in words):
            continue  # wants a network of the reader's
        done = oodscope(*(word.replace("glyphs-*", "glyphs-1") for word in words[1:]))
        assert done.status == 0, done
        ran.append(words[2])
    assert ran == ["submit", "verify", "verify", "build"]
    assert (tmp_path / "site" / "index.html").is_file()
