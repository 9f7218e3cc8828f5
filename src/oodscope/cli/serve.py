"""``oodscope serve``: the leaderboard, live."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options
from oodscope.cli.command import loading
from oodscope.cli.options import separated

SERVER = "Server"
_Host = Annotated[str, typer.Option(rich_help_panel=SERVER, help="Address to listen on; 0.0.0.0 for all.")]
_Port = Annotated[
    int, typer.Option(rich_help_panel=SERVER, help="Port to listen on; 0 for any that is free.", min=0, max=65535)
]


@contextmanager
def _needs_extra() -> Iterator[None]:
    """Say which package is missing where the server's libraries are not installed."""
    from oodscope.base.errors import OodscopeError

    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("starlette", "uvicorn", "python_multipart"):
            raise
        raise OodscopeError(
            f"serve needs {error.name}, which is not installed: pip install 'oodscope[serve]'"
        ) from error


def serve(
    context: typer.Context = None,  # type: ignore[assignment]  # typer gives it
    store: options.Store = "runs/results.sqlite",
    board: Annotated[Path, typer.Option(rich_help_panel=options.DATA, help="Folder of entries.")] = Path("leaderboard"),
    host: _Host = "127.0.0.1",
    port: _Port = 8000,
    submissions: Annotated[
        bool,
        typer.Option(
            "--submissions",
            rich_help_panel=SERVER,
            help="Accept entries from those who have the token ($OODSCOPE_TOKEN).",
        ),
    ] = False,
    token_file: Annotated[
        Path | None, typer.Option(rich_help_panel=SERVER, help="Read the token from this file.")
    ] = None,
) -> None:
    """Serve the leaderboard and live runs; read-only.

    The pages of a leaderboard, the runs of a store, and the progress of what runs now. With --submissions it accepts
    entries too.
    """
    from oodscope.base.errors import UsageError

    if context is not None and context.invoked_subcommand is not None:
        return
    with _needs_extra():
        from oodscope.serve.server import Settings, serve
        from oodscope.serve.submitters import Submitters
        from oodscope.serve.token import read_token
    if token_file is not None and not submissions:
        raise UsageError("--token-file is for --submissions; add that option, or leave the file out")
    submitters = Submitters(board, read_token(token_file)) if submissions else None
    if submitters is not None:
        submitters.check()
    words = "submissions with a token" if submitters else "read-only"
    settings = Settings(store=store, entries=board, host=host, port=port, submitters=submitters)
    serve(settings, lambda address: typer.echo(f"{address}  ({words})", err=True))


def predict(
    detector: Annotated[Path, typer.Argument(help="A file that 'oodscope fit' wrote.")],
    host: _Host = "127.0.0.1",
    port: _Port = 8000,
    together: Annotated[
        int,
        typer.Option(
            rich_help_panel=SERVER,
            min=1,
            help="Images that go through the network at once; 1: digits that do not depend on who else asks.",
        ),
    ] = 16,
    model: options.OwnModel = "",
    weights: options.FileWeights = None,
    allow_download: options.AllowDownload = False,
    device: options.Device = "auto",
) -> None:
    """Serve verdicts: one image in, one verdict out.

    POST the bytes of an image to /predict; the answer is JSON with class, score, p-value and verdict. Anybody who
    reaches the address may ask: put it behind what you trust.
    """
    loading()
    with _needs_extra():
        from oodscope.serve.verdict import VerdictLimits, serve_verdicts

    from oodscope.jobs.fit import load_fitted

    scorer = load_fitted(detector, model, separated(weights), device, allow_download=allow_download)
    limits = VerdictLimits(together=together)
    serve_verdicts(scorer, host, port, lambda address: typer.echo(f"{address}predict", err=True), limits)
