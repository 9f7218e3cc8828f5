"""What an author may choose about a figure: names, width, font; each shown on a figure that was drawn."""

import matplotlib.font_manager as fonts
import pytest
from matplotlib.text import Text

from oodscope.base.errors import UsageError
from oodscope.report.paper.figure import FIGURES
from oodscope.report.paper.look import FigureLook, check_font, read_labels, read_width
from oodscope.report.paper.style import renderer_of, write_figure
from tests.report.paper_runs import evaluation
from tests.report.test_paper_figures import runs as made_up


def tick_names(panel):
    return [label.get_text() for label in panel.get_yticklabels()]


def test_detectors_have_the_names_of_their_papers_and_others_can_be_chosen():
    runs = [evaluation()]
    (plain,) = FIGURES["openood-1"].drawn(runs).axes
    (named,) = FIGURES["openood-1"].drawn(runs, look=FigureLook({"knn": "Ours"})).axes
    assert {"ebo", "knn", "vim"} <= set(tick_names(plain))
    assert {"Energy", "Ours", "ViM"} <= set(tick_names(named)) and "knn" not in tick_names(named)
    (kept,) = FIGURES["openood-1"].drawn(runs, look=FigureLook(paper_names=False)).axes
    assert tick_names(kept) == tick_names(plain)


def test_names_beside_points_are_measured_as_they_are_written():
    figure = FIGURES["openood-6"].drawn([evaluation()], look=FigureLook())
    (panel,) = figure.axes
    words = {text.get_text() for text in panel.texts}
    assert "Relative Mahalanobis" in words and "rmds" not in words
    # of the words alone, without the lines to their points
    boxes = [Text.get_window_extent(text, renderer_of(figure)) for text in panel.texts]
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])


def test_names_beside_ranks_are_those_of_papers_too():
    (panel,) = FIGURES["dcv-ranks"].drawn(made_up("dcv-ranks"), look=FigureLook({"knn": "Ours"})).axes
    words = " ".join(text.get_text() for text in panel.texts)
    assert "Energy" in words and "Ours" in words and "ebo" not in words and "knn" not in words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("react+msp", "ReAct + MSP"),
        ("knn(k=10)", "KNN (k=10)"),
        ("vim (ood_val)", "ViM (ood_val)"),
        ("scale of grey", "scale of grey"),
        ("color", "color"),
    ],
)
def test_only_names_are_renamed(text, shown):
    assert FigureLook().named(text) == shown


def test_width_and_font_are_those_asked_for(tmp_path):
    family = next(name for name in ("DejaVu Serif", "STIXGeneral") if name in fonts.get_font_names())
    figure = FIGURES["openood-1"].drawn([evaluation()], look=FigureLook(width=5.0, font=family))
    assert figure.get_size_inches()[0] == 5.0
    written = write_figure(figure, tmp_path / "a.pdf", family).read_bytes()
    assert family.replace(" ", "").encode() in written.replace(b"-", b"")


@pytest.mark.parametrize("text", ["column", "page", "5.5", ""])
def test_widths_have_names(text):
    assert read_width(text) == {"column": 3.4, "page": 7.0, "5.5": 5.5, "": None}[text]


@pytest.mark.parametrize(
    ("read", "given", "said"),
    [
        (read_width, "wide", "column, page or a number of inches"),
        (read_width, "400", "between 1 and 20 inches"),
        (read_width, "nan", "between 1 and 20 inches"),
        (lambda text: read_labels([text]), "knn", "write NAME=WORDS"),
        (check_font, "DejaVu Sanz", "Did you mean 'DejaVu Sans"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(read, given, said):
    with pytest.raises(UsageError, match=said):
        read(given)
