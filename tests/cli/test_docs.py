"""README and docs are true: every command parses, every block of Python runs, every link leads somewhere."""

import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from oodscope.base.catalog import catalog
from tests.cli.commands import every_command, parse

ROOT = Path(__file__).parent.parent.parent
SITE = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(SITE.glob("*.md"))]
PAGES += [page for folder in ("howto", "theory") for page in sorted((SITE / folder).glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page, *languages):
    return [body for language, body in FENCE.findall(page.read_text(encoding="utf-8")) if language in languages]


def commands(page):
    """Every ``oodscope ...`` of a page, in blocks and in code spans that have options, as lists of words."""
    found = []
    for body in blocks(page, "", "bash", "sh"):
        found += [line for line in body.replace("\\\n", " ").splitlines() if line.startswith("oodscope ")]
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    found += [span for span in re.findall(r"`(oodscope [^`]+)`", text) if " -" in span and "COMMAND" not in span]
    return [shlex.split(line, comments=True)[1:] for line in found]


EVERY = [pytest.param(words, id=f"{page.name}: {' '.join(words)[:60]}") for page in PAGES for words in commands(page)]


@pytest.mark.parametrize("words", EVERY)
def test_commands_are_those_of_the_command_line(words):
    if "..." in words:
        # what the dots stand for was said before: the shown options must exist, required ones may be missing
        words = [word for word in words if word != "..."]
        needed = {"evaluate": ["--benchmark", "glyphs"]}
        words += needed.get(words[0], [])
    if words != ["--install-completion"]:
        parse(words)


def test_there_are_commands_and_few_words():
    assert len(EVERY) > 60
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1200


def test_the_readme_counts_recipes_and_detectors_right():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"(\d+) recipes", text)) == {str(len(catalog("recipes")))}
    (about,) = re.findall(r"about (\d+)\s+out-of-distribution \(OOD\) detectors", text)
    assert int(about) - 5 <= len(catalog("detectors")) <= int(about) + 5


@pytest.mark.parametrize("name", sorted({path[0] for path in every_command()}))
def test_every_command_is_in_the_table_of_the_readme_and_in_the_guide(name):
    table = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert any(f"`{name}`" in line.split("|")[1] for line in table)
    assert f"oodscope {name}" in (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", FENCE.sub("", page.read_text(encoding="utf-8"))):
        assert _exists(page.parent / target), target


def _exists(place):
    """A file, a page of the site without its ending, or a page that the site makes: of a tutorial, of the reference."""
    if place.exists() or place.with_name(f"{place.name}.md").exists():
        return True
    made = place.resolve().relative_to(SITE)
    if made.parts[0] == "gallery":
        return (SITE / "tutorials" / f"{made.name}.py").exists()
    in_reference = made.parts[0] == "reference" and made.name == "index" and bool(catalog(made.parts[1]))
    return in_reference or made == Path("results/index")


def python(page):
    return [pytest.param(page, number, id=f"{page.name}-{number}") for number in range(len(blocks(page, "python")))]


BLOCKS = [case for page in PAGES for case in python(page) if page.name != "arrays.md"]


@pytest.fixture
def names(monkeypatch, tmp_path):
    """What a page calls by name before it is used: a network, sets, arrays."""
    import oodscope as oods
    from tests import tiny

    monkeypatch.chdir(tmp_path)
    bench = tiny.benchmark()
    monkeypatch.setattr(oods, "load_benchmark", lambda name: bench)
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    arrays = {
        "z": rng.normal(size=(60, 3)),
        "h": rng.random((60, 8)),
        "y": y,
        "W": rng.random((3, 8)),
        "b": np.zeros(3),
    }
    arrays = {name: np.asarray(value, np.int64 if name == "y" else np.float32) for name, value in arrays.items()}
    clf = tiny.classifier()
    return {
        "oods": oods,
        "model": tiny.network(),
        "clf": clf,
        "bench": bench,
        "networks": [clf],
        "train": bench.id_train,
        "held_out": bench.id_val,
        "id_val": bench.id_val,
        "id_test": bench.id_test,
        "outliers": bench.near[0],
        "score": lambda pixels: pixels.mean(dim=(1, 2, 3)),
        **arrays,
        "z_new": arrays["z"],
        "h_new": arrays["h"],
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "number"), [case for page in PAGES for case in python(page) if page.name != "arrays.md"]
)
def test_python_runs(names, page, number, monkeypatch, tmp_path):
    """The blocks of arrays.md have a test of their own."""
    code = blocks(page, "python")[number]
    if "FoldPlan" in code:
        names |= _folded()
    if "photo.jpg" in code:
        from PIL import Image

        Image.fromarray(names["bench"].id_test.images([0])[0]).save(tmp_path / "photo.jpg")
    if "GeneratedChecks" in code:
        code, bound = code.replace("oods.write_report(", "bind("), []
        import inspect

        from oodscope.runs.generated import judging
        from tests import tiny

        others = [tiny.classifier(seed) for seed in (1, 2, 3, 4)]
        signature = inspect.signature(judging.judge_generated)
        monkeypatch.setattr(judging, "judge_generated", lambda *given: bound.append(signature.bind(*given)))
        names |= {"judges": others[:2], "makers": others[2:], "window": None, "bind": lambda *_: None}
    # a file without a registered network wants the network again, as the guide says
    code = code.replace('oods.load("knn.oodscope")', 'oods.load("knn.oodscope", model=clf.model)')
    code = code.replace("budget=200, chains=200", "budget=2, chains=4")
    monkeypatch.setitem(sys.modules, "shown", ModuleType("shown"))
    exec(compile(code, f"{page.name}, block {number}", "exec"), {"__name__": "shown", **names})


def _folded():
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    import oodscope as oods

    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 250, size=(120, 8, 8, 3)).astype(np.uint8)
    labels = np.arange(120) % 10
    levels = {"superclass": labels // 2}
    sets = {
        name: oods.ImageSet.from_arrays(name, pixels + shift, labels, [f"{name} {c}" for c in range(10)], levels)
        for shift, name in enumerate(("id_set", "ood_set"))
    }
    X = rng.random((120, 4))
    return {
        **sets,
        "cross_val_score": cross_val_score,
        "model": LogisticRegression(),
        "X": X,
        "y": labels + 10 * (np.arange(120) >= 60),
        "is_ood": np.arange(120) >= 60,
    }


def test_digits_are_promised_on_one_machine():
    """Another machine trains another network in its last digits; the README says so beside its table."""
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert re.search(r"On one machine [^.]*bit for bit", text) and "Another machine" in text
