"""What the README promises is there."""

import re
from pathlib import Path

import pytest
import yaml

import oodscope
from oodscope.data.manifest import Manifest
from oodscope.jobs.job import Job

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", oodscope.__all__)
def test_every_public_name_resolves(name):
    assert getattr(oodscope, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        _ = oodscope.evalute


def test_the_readme_uses_public_names_only():
    used = set(re.findall(r"\boods\.(\w+)", README))
    assert used
    assert used <= set(oodscope.__all__)


def test_the_yaml_of_the_readme_is_valid():
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)]
    kinds = {"sets": Manifest, "model": Job}
    checked = [kinds[key].model_validate(block) for block in blocks for key in kinds if key in block]
    assert len(checked) == len(blocks) == 2


def test_the_readme_names_existing_commands():
    from oodscope.cli.app import app

    named = set(re.findall(r"^oodscope (\w+)", README, flags=re.MULTILINE))
    existing = {command.name or command.callback.__name__ for command in app.registered_commands}
    existing |= {group.typer_instance.info.name for group in app.registered_groups}
    assert named
    assert named <= existing
