"""What every command has: -q, -v and -h, examples below its options, and a sign of life before torch is imported."""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from oodscope.execution.launch.launcher import Launcher
    from oodscope.execution.plan import WorkPlan
    from oodscope.execution.progress import Progress
    from oodscope.jobs.outcome import Finished

EXECUTION = "Execution"
"""The panel of the options that every command has."""

_QUIET, _VERBOSE = "oodscope.quiet", "oodscope.verbose"
_shown = {_QUIET: False, _VERBOSE: False}
"""What the running command was asked to show; a process runs one command."""


class _Common:
    """``-q``, ``-v`` and ``-h`` in the panel of execution, in this order and everywhere."""

    params: list[Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += _common_options()
        for param in self.params:
            _show_value(param)

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.rich_help_panel, option.metavar = EXECUTION, ""
        return option


class Command(_Common, TyperCommand):
    """A command with the options that every command has."""


class RunningGroup(_Common, TyperGroup):
    """A group that is a command too, with the options that every command has."""


_VALUES = {
    **dict.fromkeys(("near", "far", "csid", "ood"), "PLACES"),
    **dict.fromkeys(("weights", "activations"), "FILES"),
    **dict.fromkeys(("places", "images"), "PATHS"),
    **dict.fromkeys(("runs", "seeds"), "RUNS"),
    "settings": "KEY=VALUE",
}
"""What the help writes for the values of a list; NAMES for any other."""


def _show_value(param: Any) -> None:
    """Let the help show what a list holds in place of its Python type, and nothing beside a flag."""
    word = _VALUES.get(param.name, "NAMES")
    if param.param_type_name == "argument":
        if param.nargs == -1:  # a metavar would rename the argument
            param.display_type_rich = lambda ctx: word
    elif param.multiple and param.metavar is None:
        param.metavar = word
    elif param.is_flag:
        param.metavar = ""


def add(app: typer.Typer, function: Callable[..., Any], panel: str = "", *, name: str = "", examples: str = "") -> None:
    """Register a command.

    Parameters
    ----------
    panel : the group of commands that it is listed in.
    examples : commands, one per line, shown below its options.
    """
    app.command(name or None, cls=Command, rich_help_panel=panel or None, epilog=epilog(examples))(function)


def group(name: str, summary: str) -> typer.Typer:
    """A group of commands with one summary."""
    return typer.Typer(name=name, help=summary, no_args_is_help=True, rich_markup_mode="rich")


def loading() -> None:
    """Say at once that something happens, where torch is still to be imported, which takes seconds."""
    if "torch" not in sys.modules and not _shown[_QUIET]:
        sys.stderr.write("loading PyTorch ...\n")
        sys.stderr.flush()


def progress() -> "Progress":
    """Where a command reports how far it has come: stderr, or nowhere with ``--quiet``."""
    from oodscope.execution.console import ConsoleProgress
    from oodscope.execution.progress import SILENT

    return SILENT if _shown[_QUIET] else ConsoleProgress()


def execute(declared: Mapping[str, Any], command: str, launcher: "Launcher | None" = None) -> "Finished | WorkPlan":
    """Execute a job given by its keys; a misspelt name is refused before torch is imported."""
    from oodscope.jobs.run import execute_declared

    return execute_declared(declared, command, launcher=launcher, progress=progress(), ready=loading)


def is_verbose() -> bool:
    """Whether tracebacks are wanted."""
    return _shown[_VERBOSE]


def reset() -> None:
    """Forget what the last command was asked to show."""
    _shown.update({_QUIET: False, _VERBOSE: False})


def _keep(key: str) -> Callable[[bool], bool]:
    def kept(value: bool) -> bool:
        _shown[key] = value
        return value

    return kept


@cache
def _common_options() -> list[Any]:
    """The options of every command, made by typer from a signature; their values go to the callbacks alone."""

    def common(
        quiet: Annotated[
            bool,
            typer.Option(
                "--quiet",
                "-q",
                callback=_keep(_QUIET),
                rich_help_panel=EXECUTION,
                help="No progress on stderr; results and errors only.",
            ),
        ] = False,
        verbose: Annotated[
            bool,
            typer.Option(
                "--verbose",
                "-v",
                callback=_keep(_VERBOSE),
                rich_help_panel=EXECUTION,
                help="Print the traceback of an error too.",
            ),
        ] = False,
    ) -> None:
        """Nothing: its options are taken from it."""

    template = typer.Typer(add_completion=False)
    template.command()(common)
    made = typer.main.get_command(template).params
    for option in made:
        option.expose_value = False
    return list(made)


def epilog(examples: str) -> str | None:
    # a blank line between two lines keeps them apart in the help; "\[" is a bracket, not markup
    lines = [line.strip().replace("[", "\\[") for line in examples.strip().splitlines()]
    return "\n\n".join(["Examples:", *(f"  {line}" for line in lines)]) if lines else None
