"""RefusedError: an answer that says in one line why not."""

from starlette.responses import JSONResponse


class RefusedError(Exception):
    """Stops a request.

    Parameters
    ----------
    status : of HTTP, 400 or above.
    line : what is wrong and what to do.
    headers : such as ``Allow`` or ``Retry-After``.
    """

    def __init__(self, status: int, line: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(line)
        self.status = status
        self.line = " ".join(line.split())
        self.headers = headers or {}

    def answer(self) -> JSONResponse:
        """As JSON. The connection ends with it: what the client may still be sending is not waited for."""
        return JSONResponse({"error": self.line}, self.status, {**self.headers, "connection": "close"})
