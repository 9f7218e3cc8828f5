"""Verdicts over HTTP: one image in, class, score, p-value and verdict out."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from oodscope.data.images.decoding import Picture, UnreadableImageError, decode
from oodscope.deploy.scorer import Prediction, Scorer
from oodscope.serve.answers import RefusedError, SafeHeaders
from oodscope.serve.connection import Timely
from oodscope.serve.rates import Rate, RateLimit
from oodscope.serve.server import bound

_LOG = logging.getLogger(__name__)
_KEEP_ALIVE_SECONDS = 30


@dataclass(frozen=True)
class VerdictLimits:
    """What is accepted.

    Parameters
    ----------
    bytes : of one encoded image.
    seconds : for a request's body to arrive.
    waiting : images that may wait for the network; more are refused, with the time after which to ask again.
    together : images that go through the network at once. 1 gives digits that do not depend on who else asks; more give
        scores that agree to rounding, and more answers a second.
    """

    bytes: int = 32 * 2**20
    seconds: float = 30.0
    waiting: int = 1000
    together: int = 16


class VerdictServer:
    """Answers ``POST /predict`` (the bytes of one image) from one scorer, and ``GET /`` with what it promises."""

    def __init__(self, scorer: Scorer, limits: VerdictLimits | None = None, rate: Rate | None = None) -> None:
        self.scorer, self.limits, self.rate = scorer, limits or VerdictLimits(), rate or Rate()
        self._queue: asyncio.Queue[tuple[Picture, asyncio.Future[Prediction]]] | None = None
        self._decoding = ThreadPoolExecutor(2, "decode")
        self._judging = ThreadPoolExecutor(1, "judge")
        self._pending = 0

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self.about, methods=["GET"]),
                Route("/predict", self.predict, methods=["POST"]),
            ],
            middleware=[Middleware(SafeHeaders), Middleware(RateLimit, self.rate)],
            exception_handlers={RefusedError: _refused, HTTPException: _http_error, Exception: _failed},
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self._queue = asyncio.Queue()
        judging = asyncio.create_task(self._judge(self._queue))
        try:
            yield
        finally:
            judging.cancel()
            self._decoding.shutdown(cancel_futures=True)
            self._judging.shutdown(cancel_futures=True)

    async def about(self, request: Request) -> Response:
        calibration = self.scorer.calibration
        content: dict[str, Any] = {
            "model": self.scorer.classifier.name,
            "detector": self.scorer.detector.id,
            "classes": list(self.scorer.class_names),
            "threshold": None if calibration is None else calibration.threshold,
            "guarantee": None if calibration is None else str(calibration.guarantee),
            "predict": "POST the bytes of one image to /predict",
        }
        return JSONResponse(content)

    async def predict(self, request: Request) -> Response:
        if self._pending >= self.limits.waiting:
            raise RefusedError(503, f"{self._pending} images wait already; try again later", {"retry-after": "1"})
        self._pending += 1
        try:
            content = await self._body(request)
            loop = asyncio.get_running_loop()
            try:
                picture = await loop.run_in_executor(self._decoding, _decoded, content)
            except UnreadableImageError as error:
                raise RefusedError(422, str(error)) from error
            answer: asyncio.Future[Prediction] = loop.create_future()
            assert self._queue is not None, "the application is running"
            self._queue.put_nowait((picture, answer))
            return JSONResponse((await answer)._asdict())
        finally:
            self._pending -= 1

    async def _body(self, request: Request) -> bytes:
        """The bytes of the request, as far as they stay within the limits."""
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.limits.seconds):
                async for part in request.stream():
                    size += len(part)
                    if size > self.limits.bytes:
                        raise RefusedError(413, f"an image may have {self.limits.bytes >> 20} MiB at most")
                    parts.append(part)
        except TimeoutError as error:
            raise RefusedError(408, "the image did not come in time") from error
        except ClientDisconnect as error:
            raise RefusedError(400, "the connection ended before the image did") from error
        if not size:
            raise RefusedError(400, "no image: send the bytes of one as the body of the request")
        return b"".join(parts)

    async def _judge(self, queue: "asyncio.Queue[tuple[Picture, asyncio.Future[Prediction]]]") -> None:
        """Whoever waits when the network is free goes through it together."""
        loop = asyncio.get_running_loop()
        while True:
            batch = [await queue.get()]
            while len(batch) < self.limits.together and not queue.empty():
                batch.append(queue.get_nowait())
            pictures = [picture for picture, _ in batch]
            try:
                predictions = await loop.run_in_executor(self._judging, self.scorer.predict, pictures)
            except Exception as error:  # one answer each, and the next batch gets its chance
                _LOG.exception("a batch of %d images failed", len(batch))
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(RefusedError(500, f"the network failed at this: {type(error).__name__}"))
                continue
            for (_, answer), prediction in zip(batch, predictions):
                if not answer.done():
                    answer.set_result(prediction)


def serve_verdicts(
    scorer: Scorer, host: str, port: int, ready: Callable[[str], None], limits: VerdictLimits | None = None
) -> None:
    """Answer until interrupted; ``ready`` is called with the address."""
    with bound(host, port) as listener:
        config = uvicorn.Config(
            VerdictServer(scorer, limits).application(),
            http=Timely,
            ws="none",
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        )
        host, port = listener.getsockname()[:2]
        listener.listen()
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        uvicorn.Server(config).run(sockets=[listener])


def _decoded(content: bytes) -> Picture:
    return np.asarray(decode(BytesIO(content), "in the request"))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return error.answer()


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return RefusedError(error.status_code, str(error.detail).lower(), dict(error.headers or {})).answer()


async def _failed(request: Request, error: Exception) -> Response:
    return RefusedError(500, "the server failed at this; its log says how").answer()
