"""What benchmarks import is there: they run rarely, so a renamed function would be missed in them for long."""

import ast
import importlib
from pathlib import Path

import pytest

BENCHMARKS = {path.stem: path for path in (Path(__file__).parents[1] / "benchmarks").glob("*.py")}
OURS = ("oodscope", "tests")


def names_used(tree: ast.AST):
    """Each module of this repository that a file imports, with a name taken from it; wherever that stands."""
    known_as = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            known_as |= {alias.asname: alias.name for alias in node.names if alias.asname}
            yield from ((alias.name, "") for alias in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known_as:
            yield known_as[node.value.id], node.attr


def defined(tree: ast.Module) -> set[str]:
    """What another benchmark can import from one."""
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return functions | {name.id for node in tree.body for name in ast.walk(node) if isinstance(name, ast.Name)}


def is_there(module: str, name: str) -> bool:
    if module in BENCHMARKS:
        return not name or name in defined(ast.parse(BENCHMARKS[module].read_text(encoding="utf-8")))
    if module.split(".")[0] not in OURS:
        return True
    try:
        found = importlib.import_module(module)
        if name and not hasattr(found, name):
            importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


def missing(source: str) -> list[str]:
    """What a file uses of this repository and is not there."""
    return sorted({f"{module}: {name}" for module, name in names_used(ast.parse(source)) if not is_there(module, name)})


def test_there_are_benchmarks():
    assert len(BENCHMARKS) > 30


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_every_import_of_a_benchmark_is_there(name):
    assert missing(BENCHMARKS[name].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "from oodscope.base.errors import NoSuchError",
        "def main():\n    from oodscope.base.no_such_file import DataError",
        "import oodscope.no_such_folder",
        "import oodscope as oods\noods.no_such_function()",
        "from openood_cifar import no_such_function",
    ],
)
def test_a_stale_import_is_found(source):
    assert len(missing("import os\nos.no_matter\n" + source)) == 1


def test_a_module_may_be_imported_from_its_package():
    assert missing("from oodscope.base import errors\nfrom openood_cifar import open_classifier") == []
