"""The code of docs/arrays.md runs as it stands."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.runs.evaluation.test_activations import small

PAGE = (Path(__file__).parent.parent / "docs" / "arrays.md").read_text(encoding="utf-8")


def blocks(language):
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(found) == 2
    return found


@pytest.mark.slow
def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for block in blocks("python"):
        exec(compile(block, "docs/arrays.md", "exec"), {})
        assert "AUROC" in capsys.readouterr().out
    given = small()
    for name, arrays in (
        ("train", given["id_train"]),
        ("test", given["id_test"]),
        ("letters", given["near"]["letters"]),
    ):
        np.savez(tmp_path / f"{name}.npz", **arrays)
    for block in blocks("bash"):
        words = shlex.split(block.replace("\\\n", " "))
        assert words[0] == "oodscope"
        done = subprocess.run(
            [sys.executable, "-m", "oodscope", *words[1:]], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("runs/*/report.html"))) == 2
