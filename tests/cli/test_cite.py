"""``oodscope cite`` and the BibTeX of papers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from oodscope.base.catalog import catalog
from oodscope.base.paper import Paper
from oodscope.cli.app import app
from oodscope.document.citations import SECTIONS, cite

ENTRY = re.compile(r"@(misc|inproceedings|software)\{([a-z0-9]+),\n((?:  \w+ = \{.+\},?\n)+)\}")


def entries(bibtex):
    """What a strict reader of BibTeX finds: (kind, key, fields), with nothing left over but comments."""
    found = [
        (kind, key, dict(re.findall(r"^  (\w+) = \{(.+?)\},?$", body, re.M)))
        for kind, key, body in ENTRY.findall(bibtex)
    ]
    left = [line for line in ENTRY.sub("", bibtex).splitlines() if line.strip() and not line.startswith("%")]
    assert left == []
    return found


@pytest.mark.parametrize("section", SECTIONS)
def test_every_name_gives_entries_that_parse(section):
    for name in catalog(section):
        for citation in cite([name]):
            for _, _, fields in entries(citation.bibtex()):
                assert fields["title"] and fields["author"] and ("eprint" in fields or fields["booktitle"])
                assert all(text.count("{") == text.count("}") for text in fields.values())


def test_all_names_together_have_each_paper_once_and_no_key_twice():
    found = cite([name for section in SECTIONS for name in catalog(section)])
    papers = [each.paper for each in found]
    assert len(papers) == len(set(papers))
    keys = [paper.key for paper in papers if paper is not None]
    assert len(keys) == len(set(keys))
    assert {name for each in found for name in each.names} == {name for s in SECTIONS for name in catalog(s)}


def test_authors_years_and_numbers():
    kind, key, fields = entries(Paper("A & B", "Liang, Li & Srikant", "ICLR 2018").bibtex())[0]
    assert (kind, key, fields["author"]) == ("inproceedings", "liang2018a", "Liang and Li and Srikant")
    assert (fields["title"], fields["booktitle"], fields["year"]) == (r"{A \& B}", "ICLR", "2018")
    kind, key, fields = entries(Paper("Long title", "Urrea-Castaño et al.", "arXiv 2509.05778").bibtex())[0]
    assert (kind, key, fields["author"]) == ("misc", "urreacastano2025long", "Urrea-Castaño and others")
    assert (fields["eprint"], fields["year"]) == ("2509.05778", "2025")


words = st.text(st.characters(whitelist_categories=("Lu", "Ll"), whitelist_characters=" &%$#_:-"), min_size=1)


@given(words, words)
def test_any_title_and_author_parse(title, authors):
    assert len(entries(Paper(title.strip() or "t", authors.strip(" &") or "a", "ICML 2022").bibtex())) == 1


def test_a_card_is_read_and_a_bad_one_refused():
    assert Paper.parse("Yoon et al., Evaluating, Well, arXiv 2208.10940") == (
        "Evaluating, Well",
        "Yoon et al.",
        "arXiv 2208.10940",
    )
    with pytest.raises(ValueError, match="AUTHORS, TITLE, VENUE"):
        Paper.parse("somebody 2020")


def test_a_rectifier_with_a_score_asks_for_both():
    assert [each.names for each in cite(["react+msp", "msp"])] == [("react",), ("msp",)]


def test_what_nobody_published_is_said():
    assert cite(["average"])[0].bibtex() == "% average: not published"


def run(*argv):
    return CliRunner().invoke(app, ["cite", *argv], prog_name="oodscope")


def test_names_by_command_as_text():
    done = run("knn,vim", "--format", "text")
    assert done.exit_code == 0 and [line.split(":")[0] for line in done.stdout.splitlines()] == ["knn", "vim"]


def test_a_run_asks_for_the_package_its_protocol_and_its_detectors(tmp_path):
    import numpy as np

    import oodscope as oods

    rng = np.random.default_rng(0)
    known = {"logits": rng.normal(size=(60, 3)), "labels": np.arange(60) % 3}
    result = oods.evaluate_activations(
        id_test=known, near={"other": {"logits": rng.normal(size=(50, 3))}}, detectors=["msp", "ebo"]
    )
    result.save(tmp_path / "run")
    found = {key: fields for _, key, fields in entries(run(str(tmp_path)).stdout)}
    assert {"oodscope", "zhang2023openood", "hendrycks2017baseline"} <= set(found)
    assert any("Energy" in fields["title"] for fields in found.values())
