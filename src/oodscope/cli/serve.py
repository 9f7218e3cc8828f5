"""``oodscope serve``: the leaderboard, live."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options

SERVER = "Server"


def serve(
    context: typer.Context = None,  # type: ignore[assignment]  # typer gives it
    store: options.Store = "runs/results.sqlite",
    board: Annotated[Path, typer.Option(rich_help_panel=options.DATA, help="Folder of entries.")] = Path("leaderboard"),
    host: Annotated[
        str, typer.Option(rich_help_panel=SERVER, help="Address to listen on; 0.0.0.0 for all.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(rich_help_panel=SERVER, help="Port to listen on; 0 for any that is free.", min=0, max=65535)
    ] = 8000,
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
    from oodscope.base.errors import OodscopeError, UsageError

    if context is not None and context.invoked_subcommand is not None:
        return
    try:
        from oodscope.serve.server import Settings, serve
        from oodscope.serve.submitters import Submitters
        from oodscope.serve.token import read_token
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("starlette", "uvicorn", "python_multipart"):
            raise
        raise OodscopeError(
            f"serve needs {error.name}, which is not installed: pip install 'oodscope[serve]'"
        ) from error
    if token_file is not None and not submissions:
        raise UsageError("--token-file is for --submissions; add that option, or leave the file out")
    submitters = Submitters(board, read_token(token_file)) if submissions else None
    if submitters is not None:
        submitters.check()
    words = "submissions with a token" if submitters else "read-only"
    settings = Settings(store=store, entries=board, host=host, port=port, submitters=submitters)
    serve(settings, lambda address: typer.echo(f"{address}  ({words})", err=True))
