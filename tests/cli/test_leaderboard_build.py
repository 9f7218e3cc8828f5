"""``oodscope leaderboard build``: a folder of entries becomes a site."""

import pytest

from tests.leaderboard.leaderboard_world import edit, enter, few_replicates  # noqa: F401
from tests.report.reading import read


@pytest.mark.slow
def test_a_folder_becomes_a_site_and_a_refused_entry_is_named(oodscope, tmp_path):
    board, site = tmp_path / "board", tmp_path / "site"
    enter(board)
    enter(board, id="msp-tiny", detector="msp")
    edit(enter(board, id="vim-tiny", detector="vim"), lambda content: content["claims"][0].update(value=0.123))
    outcome = oodscope("leaderboard", "build", board, "--output", site)
    assert outcome.status == 1
    assert "vim-tiny: REFUSED" in outcome.out and "2 entries and the published tables" in outcome.out
    assert not (site / "entries" / "vim-tiny").exists()
    (table,) = [path for path in site.glob("benchmarks/*/standard.html") if "openood" not in path.parent.name]
    page = read(table.read_text(encoding="utf-8"))
    assert {row.attributes["id"] for row in page.all("tr") if "id" in row.attributes} == {"e-knn-tiny", "e-msp-tiny"}
    assert (site / "benchmarks" / "cifar10@openood-1.5" / "standard.html").is_file()
    for name in ("knn-tiny", "msp-tiny"):
        copied = (site / "entries" / name / "scores.parquet").read_bytes()
        assert copied == (board / name / "scores.parquet").read_bytes()
    method = read((site / "methods" / "knn.html").read_text(encoding="utf-8"))
    assert {"../entries/knn-tiny/entry.json", "../entries/knn-tiny/scores.parquet"} <= {
        link.attributes["href"] for link in method.all("a")
    }


def test_a_folder_of_something_else_is_left_alone(oodscope, tmp_path):
    (tmp_path / "board").mkdir()
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("x")
    outcome = oodscope("leaderboard", "build", tmp_path / "board", "--output", tmp_path / "thesis")
    assert outcome.status == 1 and "neither empty nor a site" in outcome.err
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "x"
