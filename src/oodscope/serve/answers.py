"""RefusedError: an answer that says in one line why not."""

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FRAMES = "frame-ancestors 'none'"
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    f"base-uri 'none'; form-action 'none'; {FRAMES}"
)
"""Own files only, and no other site may show ours in a frame."""

ALWAYS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}


class SafeHeaders:
    """Adds them to every answer of an application; a page may bring a policy of its own, nothing else."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = safe(message.get("headers", []))
            await send(message)

        await self.app(scope, receive, with_headers)


def safe(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of an answer and those that it must carry."""
    own = {name.lower() for name, _ in headers}
    wanted = ALWAYS | {"content-security-policy": PAGE_POLICY, "cache-control": "no-cache"}
    return [*headers, *((name.encode(), value.encode()) for name, value in wanted.items() if name.encode() not in own)]


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
