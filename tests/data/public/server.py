"""A small HTTP server on this machine that can resume, refuse to, or break off."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Served:
    """What is offered, and what was asked for.

    ``break_after`` cuts the next answers off after so many bytes; ``ranges`` says whether parts can be asked for.
    """

    def __init__(self, files):
        self.files = files
        self.ranges = True
        self.break_after = None
        self.asked = []
        self.url = ""


@contextmanager
def serve(files, kind=None):
    """``kind`` is the content type that answers claim."""
    served = Served(files)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            data = served.files.get(self.path.lstrip("/"))
            wanted = self.headers.get("Range")
            served.asked.append((self.path, wanted))
            if data is None:
                self.send_error(404)
                return
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and served.ranges else 0
            if start and start >= len(data):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(data)}")
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(data) - start))
            if kind is not None:
                self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(data[start:][: served.break_after])

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
