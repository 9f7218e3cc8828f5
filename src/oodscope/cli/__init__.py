"""The command line: one small file per command, nothing heavy imported before it is needed."""

import os
import sys


def main() -> None:
    """Run the command line; whatever a user can mend becomes one line on stderr and exit status 1."""
    from oodscope.base.errors import OodscopeError
    from oodscope.cli.app import app

    try:
        app()
    except OodscopeError as error:
        if os.environ.get("OODSCOPE_TRACEBACK"):
            raise
        sys.stderr.write(f"oodscope: {error}\n")
        sys.exit(1)
    except OSError as error:
        if os.environ.get("OODSCOPE_TRACEBACK"):
            raise
        sys.stderr.write(f"oodscope: {error.filename or 'a file'}: {error.strerror or error}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("oodscope: interrupted; run the same command again to go on from here\n")
        sys.exit(130)
