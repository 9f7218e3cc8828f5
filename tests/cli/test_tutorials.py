"""The tutorials run: the way of a newcomer in small, each of them whole, one of them as a notebook."""

import ast
import json
import os
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from oodscope.models.zoo.zoo import create_model

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("[0-9]*.py"))
FIRST = TUTORIALS[0]
LIMIT = 60
"""Seconds of processor time, children included, with one thread: no more on one idle core."""


def calls(path, name):
    """What a tutorial passes to a function, if it is text."""
    found = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    named = [node for node in found if getattr(node.func, "id", getattr(node.func, "attr", "")) == name]
    return [ast.literal_eval(node.args[0]) for node in named if isinstance(node.args[0], ast.Constant)]


def commands():
    """The commands of the first tutorial in their order, with the installation in its introduction."""
    return [*re.findall(r"(?m)^ +(pip install \w+)", FIRST.read_text("utf-8")), *calls(FIRST, "shell")]


@pytest.mark.slow
def test_the_commands_of_the_first_tutorial_end_in_a_report(oodscope, tmp_path):
    """As a newcomer types them, on folders with few images and a network that nobody trained."""
    install, *others = commands()
    assert install == "pip install oodscope" and len(others) <= 4
    (source,) = calls(FIRST, "write_text")
    (tmp_path / "mynet.py").write_text(source)
    network, _ = create_model("small_cnn", num_classes=20)
    torch.save(network.state_dict(), tmp_path / "net.pt")
    rng = np.random.default_rng(0)
    for folder, count in {"train": 6, "test": 2, "letters": 2, "textures": 2}.items():
        for name in range(20):
            place = tmp_path / folder / f"class_{name:02}"
            place.mkdir(parents=True)
            for number in range(count):
                Image.fromarray(rng.integers(0, 256, (32, 32, 3)).astype(np.uint8)).save(place / f"{number}.png")
    for command in others:
        done = oodscope(*shlex.split(command)[1:])
        assert done.status == 0, done
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert len(list((tmp_path / "runs" / "mine").glob("*/run.json"))) == 1


@pytest.mark.soak
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_every_tutorial_runs_within_a_minute_and_shows_a_picture(path, tmp_path):
    settings = {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "OODSCOPE_CACHE": str(tmp_path / "cache")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, env=os.environ | settings, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert "at chance" not in done.stdout, "its numbers would judge noise"
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime <= LIMIT
    assert "plt.show()" in path.read_text("utf-8") or path.stem == "12_laptop_to_cluster"


def notebook_of(path):
    """A tutorial as the notebook that readers download from the site."""
    pytest.importorskip("sphinx_gallery", reason="the site needs the extra docs")
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.notebook import jupyter_notebook
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    _, blocks = split_code_and_text_blocks(str(path))
    return jupyter_notebook(blocks, dict(DEFAULT_GALLERY_CONF), str(path.parent))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_every_tutorial_is_a_notebook_of_code_that_compiles(path):
    cells = [cell for cell in notebook_of(path)["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 2
    for cell in cells:
        compile("".join(cell["source"]), path.name, "exec")


@pytest.mark.soak
@pytest.mark.parametrize("number", [2, 4])
def test_a_tutorial_runs_as_a_notebook_and_results_show_themselves(number, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.reads(json.dumps(notebook_of(TUTORIALS[number - 1])), as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    tables = [output["data"].get("text/html", "") for output in shown]
    assert sum('<div class="oodscope">' in html for html in tables) >= 2
    assert any("image/png" in output["data"] for output in shown)
