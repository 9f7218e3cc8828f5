"""``oodscope serve``: the leaderboard, live."""

from pathlib import Path
from typing import Annotated

import typer


def serve(
    context: typer.Context = None,  # type: ignore[assignment]  # typer gives it
    store: Annotated[
        str, typer.Option(help="Result store: a file or a database URL.", envvar="OODSCOPE_STORE", show_envvar=True)
    ] = "runs/results.sqlite",
    board: Annotated[Path, typer.Option(help="Folder of entries.")] = Path("leaderboard"),
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.", min=0, max=65535)] = 8000,
    submissions: Annotated[
        bool, typer.Option("--submissions", help="Accept entries from those who have the token ($OODSCOPE_TOKEN).")
    ] = False,
    token_file: Annotated[Path | None, typer.Option(help="Read the token from this file instead.")] = None,
) -> None:
    """Serve the leaderboard's pages, the runs of a store, and the progress of what runs now. Read-only by default."""
    from oodscope.base.errors import OodscopeError

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
        raise OodscopeError("--token-file is for --submissions; add that option, or leave the file out")
    submitters = Submitters(board, read_token(token_file)) if submissions else None
    if submitters is not None:
        submitters.check()
    words = "submissions with a token" if submitters else "read-only"
    settings = Settings(store=store, entries=board, host=host, port=port, submitters=submitters)
    serve(settings, lambda address: typer.echo(f"{address}  ({words})", err=True))
