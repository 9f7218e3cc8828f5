"""A figure is data: finite, small, harmless inside a page, and drawn by a bundle that is what it says."""

import json
import math
import re
from hashlib import sha256
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oodscope.base.errors import DataError, StorageError
from oodscope.document.figure import Bars, Figure, Line, Text, figure_name
from oodscope.report.render import bundle
from oodscope.report.render.plotly import plain, plotly_json, shown
from oodscope.report.render.thinning import HEIGHT, WIDTH, thin

EVIL = """</script><script>alert(1)</script><!--'"%{x}<a href="javascript:alert(2)">&lt;"""

numbers = st.floats(-1e12, 1e12).filter(lambda value: value == 0 or abs(value) > 1e-9)


def figure(*marks):
    return Figure("some-name", "title", "caption", marks)


class TestJson:
    def test_it_cannot_end_the_element_that_holds_it(self):
        text = plotly_json(figure(Line(EVIL, (0.0, 1.0), (0.0, 1.0), 0), Text(0.0, 0.0, EVIL)))
        assert not set(text) & set("<>&")
        assert text.isascii()
        line, words = json.loads(text)["data"]
        assert line["name"] == words["text"][0] == plain(EVIL)

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_what_cannot_be_drawn_is_refused_by_name(self, value):
        with pytest.raises(DataError, match="figure some-name: a number is NaN or infinite"):
            figure(Line("x", (0.0, 1.0), (1.0, value), 0))
        with pytest.raises(DataError, match="some-name"):
            figure(Text(0.0, value, "x"))
        with pytest.raises(DataError, match="some-name"):
            figure(Bars("x", ("a", "b"), (1.0, value), 0))

    def test_a_figure_is_plain_data(self):
        made = figure(Line("x", (0.0, 1.0), (0.0, 1.0), 0), Text(0.0, 0.0, "words"))
        told = json.loads(json.dumps(made.to_dict()))
        assert [mark["kind"] for mark in told["marks"]] == ["line", "text"]
        assert told["marks"][0]["y"] == [0.0, 1.0]
        assert told["x"]["scale"] == "linear"

    @pytest.mark.parametrize("name", ["", "Upper", "a b", "a--b", "-a", "a<b", "a\n"])
    def test_a_name_is_fit_for_an_id(self, name):
        with pytest.raises(DataError, match="cannot be called"):
            Figure(name, "", "", ())

    @settings(max_examples=40, deadline=None)
    @given(*2 * [st.lists(st.text(max_size=6), min_size=1, max_size=3)])
    def test_any_words_have_a_name_of_their_own(self, first, second):
        names = [Figure(figure_name("x", *words), "", "", ()).name for words in (first, second)]
        assert (names[0] == names[1]) == (first == second)

    def test_plain_text_is_read_letter_by_letter(self):
        assert plain("a<b> & c") == "a&lt;b&gt; &amp; c"


class TestShown:
    @settings(deadline=None)
    @given(st.lists(numbers, min_size=1, max_size=20))
    def test_no_eye_sees_the_difference(self, values):
        span = max(values) - min(values)
        for value, short in zip(values, shown(values)):
            assert abs(short - value) <= max(0.5e-3 * abs(value), 1e-300)
            if span > 0:
                assert abs(short - value) <= 0.5e-3 * span

    def test_digits_that_no_screen_shows_are_gone(self):
        assert json.dumps(shown([0.123456789, 1.0, 0.00012345678])) == "[0.12346, 1, 0.0001235]"
        assert json.dumps(shown([1e6 + 0.123456, 1e6 + 0.323456])) == "[1000000.12346, 1000000.32346]"
        assert shown(1234567.0) == 1235000
        assert shown([]) == []
        assert shown([0.0, 5.0]) == [0, 5]


class TestThinning:
    @pytest.mark.parametrize("n", [2, 3, 150, 5000])
    def test_the_line_stays_within_a_pixel(self, n):
        x = np.linspace(0, 1, n)
        y = np.sqrt(x)
        views = (x, y), (x**0.25, y)
        kept = thin(*views)
        assert kept[0] == 0
        assert kept[-1] == n - 1
        assert len(kept) <= min(n, 200)
        assert (np.diff(kept) > 0).all()
        for across, up in views:
            for start, end in pairwise(kept):
                for point in range(start + 1, end):
                    assert self.distance(across, up, start, point, end) <= 0.75 + 1e-9
        if n == 5000:
            assert len(kept) < 60

    def distance(self, x, y, start, point, end):
        a, p, b = ((WIDTH * x[i], HEIGHT * y[i]) for i in (start, point, end))
        along = ((p[0] - a[0]) * (b[0] - a[0]) + (p[1] - a[1]) * (b[1] - a[1])) / math.dist(a, b) ** 2
        return math.dist(p, (a[0] + along * (b[0] - a[0]), a[1] + along * (b[1] - a[1])))

    def test_a_point_that_only_one_view_shows_is_kept(self):
        x, flat = np.linspace(0, 1, 101), np.zeros(101)
        bump = flat.copy()
        bump[50] = 0.5
        assert thin((x, flat)).tolist() == [0, 100]
        assert 50 in thin((x, flat), (x, bump))

    def test_points_run_out_before_the_largest_steps_do(self):
        rng = np.random.default_rng(0)
        x, y = np.linspace(0, 1, 999), rng.random(999) / 1000
        y[[300, 600]] = 1
        kept = thin((x, y), points=7, tolerance=0)
        assert len(kept) == 7
        assert {300, 600} <= set(kept.tolist())

    def test_one_point_is_a_curve(self):
        assert thin((np.zeros(1), np.zeros(1))).tolist() == [0]

    def test_a_closed_loop_has_no_line_to_be_near(self):
        x, y = np.array([0, 0.5, 0]), np.array([0, 0.5, 0])
        assert thin((x, y)).tolist() == [0, 1, 2]


class TestBundle:
    def test_it_is_the_published_file(self):
        content = bundle.script().encode()
        assert sha256(content).hexdigest() == bundle.SHA256
        assert bundle.VERSION in content[:200].decode()
        assert b"\r" not in content  # a browser would turn it into a line feed, and the policy's hash would differ

    def test_it_can_stand_inside_a_page(self):
        assert not re.search(r"</script|<!--|<script", bundle.script(), re.IGNORECASE)
        assert not re.search(r"\beval\(|new Worker", bundle.script())

    def test_its_licence_travels_with_it(self):
        assert bundle.licence().startswith("MIT License")
        assert "Plotly" in bundle.licence()

    def test_a_changed_file_is_noticed(self, monkeypatch):
        monkeypatch.setattr(bundle, "SHA256", "0" * 64)
        with pytest.raises(StorageError, match="not the published bundle"):
            bundle.script()
