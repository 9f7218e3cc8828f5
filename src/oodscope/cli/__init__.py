"""The command line: one small file per command, nothing heavy imported before it is needed."""

import os
import re
import sys
from copy import copy
from types import ModuleType
from typing import Any

BAD_USAGE, FAILED, INTERRUPTED = 2, 1, 130
"""Exit statuses: what was asked for cannot be meant; the work failed; ^C."""


def main() -> None:
    """Run the command line; whatever a user can mend becomes one line on stderr.

    Exit status 2: the command line, or the file that declares the work, asks for what cannot be meant: an unknown
    command, option, key or name, an impossible value, options that exclude each other. 1: the work failed. 130: ^C.
    """
    import typer

    from oodscope.base.errors import OodscopeError, UsageError
    from oodscope.cli.app import REFUSED, app
    from oodscope.cli.command import is_verbose, reset

    reset()
    completing = "_OODSCOPE_COMPLETE" in os.environ  # a shell asks without arguments, and needs every option
    if {"-h", "--help"} & set(sys.argv[1:]) or not (sys.argv[1:] or completing):
        _import_help()
    if sys.argv[1:] in ([], ["-h"], ["--help"]) and not completing:
        app = _without_parameters(app)
    try:
        status = app(standalone_mode=False, prog_name="oodscope")
    except OodscopeError as error:
        if is_verbose() or os.environ.get("OODSCOPE_TRACEBACK"):
            raise
        _end(str(error), BAD_USAGE if isinstance(error, UsageError) else FAILED)
    except REFUSED as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "oodscope"
        _end(f"{_refusal(error)}  See: {command} -h", error.exit_code)
    except typer.Abort:
        _end("aborted", FAILED)
    except ModuleNotFoundError as error:
        missing = (error.name or "oodscope").partition(".")[0]
        if is_verbose() or os.environ.get("OODSCOPE_TRACEBACK") or missing == "oodscope":
            raise
        _end(f"this needs {missing}, which is not installed: {_remedy(missing)}", FAILED)
    except OSError as error:
        if is_verbose() or os.environ.get("OODSCOPE_TRACEBACK"):
            raise
        _end(f"{error.filename or 'a file'}: {error.strerror or error}", FAILED)
    except KeyboardInterrupt:
        status = INTERRUPTED
    if status == INTERRUPTED:
        _end("interrupted; run the same command again to continue from here", INTERRUPTED)
    if isinstance(status, int) and status:
        sys.exit(status)


def _remedy(module: str) -> str:
    """What installs a module: an extra of this package where one brings it."""
    extras = {
        "clip": ("open_clip",),
        "cloud": ("fsspec", "gcsfs", "s3fs"),
        "hf": ("datasets", "huggingface_hub", "transformers"),
        "onnx": ("onnx", "onnxruntime", "onnxscript"),
        "postgres": ("psycopg",),
        "ray": ("ray",),
        "serve": ("python_multipart", "starlette", "uvicorn"),
    }
    extra = next((name for name, modules in extras.items() if module in modules), None)
    return f"pip install {module}" if extra is None else f"pip install 'oodscope[{extra}]'"


def _import_help() -> None:
    """Import what draws help, without Markdown, tracebacks and attrs: never drawn here, and 0.1 s of imports."""
    stand_ins = {name: ModuleType(name) for name in ("rich.markdown", "rich.traceback") if name not in sys.modules}
    for name, module in stand_ins.items():
        module.__dict__[name.removeprefix("rich.").title()] = None
    sys.modules.update(stand_ins)
    absent: dict[str, Any] = {"attr": None} if "attr" not in sys.modules else {}  # None makes an import fail at once
    sys.modules.update(absent)
    try:
        import typer.rich_utils  # noqa: F401
    finally:
        for name in (*stand_ins, *absent):
            del sys.modules[name]


def _without_parameters(app: Any) -> Any:
    """A copy whose commands have names and summaries only: a list shows no more, and options take time to make."""
    short = copy(app)
    short.registered_commands = [_bare(command) for command in app.registered_commands]
    short.registered_groups = []
    for group in app.registered_groups:
        shown, inner = copy(group), copy(group.typer_instance)
        inner.registered_commands, inner.registered_groups = [], []
        if inner.registered_callback is not None:
            inner.registered_callback = _bare(inner.registered_callback)
        shown.typer_instance = inner
        short.registered_groups.append(shown)
    return short


def _bare(registered: Any) -> Any:
    def bare() -> None: ...

    bare.__doc__, bare.__name__ = registered.callback.__doc__, registered.callback.__name__
    short = copy(registered)
    short.callback = bare
    return short


def _refusal(error: Any) -> str:
    """What the parser refuses, in one sentence, and the choice that was probably meant."""
    from oodscope.base.errors import did_you_mean

    message = (
        " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".") or "a command is missing"
    )
    wrong = re.search(r"'([^']*)' is not one of ('.*')$", message)
    if wrong is None:
        return f"{message}." if not message.endswith("?") else message
    choices = re.findall("'([^']*)'", wrong[2])
    return f"{message}.{did_you_mean(wrong[1], choices)}"


def _end(message: str, status: int) -> None:
    sys.stderr.write(f"oodscope: {message}\n")
    sys.exit(status)
