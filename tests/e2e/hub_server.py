"""A hub on this machine, and the other host that has its large files.

It does what a test tells it to: cuts, lies, refuses.
"""

import hashlib
import http.server
import json
import threading
import time
import urllib.parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPO = "org/tiny"
PIECE = 4096  # bytes that are sent at once


def is_large(path):
    return path.endswith(".safetensors")


def etag_of(path, content):
    if is_large(path):
        return hashlib.sha256(content).hexdigest()
    head = f"blob {len(content)}\0".encode()
    return hashlib.sha1(head + content).hexdigest()


class Hub:
    """Serves `files` (path -> bytes) as the only commit of REPO."""

    def __init__(self, files):
        self.files = dict(files)
        self.listed = list(files)  # names, as the hub gives them
        self.commit = COMMIT
        self.requests = []  # (host, method, path, headers)
        # Path -> [(status, fields)], for its next requests.
        self.refusals = {}
        # Bytes after which each of the next bodies of large files is cut.
        self.cuts = []
        self.damage = lambda body: body  # of large files
        self.ignores_ranges = False
        self.sizes = {}  # path -> the size that the hub claims
        # Sends half of a large file, and then nothing until it is set.
        self.stall = None
        self.pause = 0  # seconds between the pieces of a large file
        self._servers = [self._start("hub"), self._start("cdn")]
        self.hub, self.cdn = (server.server_port for server in self._servers)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.hub}"

    def asked(self, host, method="GET"):
        """The requests of one kind that came to a host, without the list."""
        return [
            (path, headers)
            for where, how, path, headers in self.requests
            if (where, how) == (host, method) and "/api/" not in path
        ]

    def close(self):
        if self.stall:
            self.stall.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def _start(self, host):
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                hub._answer(self, host)

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def _answer(self, handler, host):
        path = urllib.parse.unquote(handler.path)
        self.requests.append(
            (host, handler.command, path, dict(handler.headers))
        )
        refusals = self.refusals.get(path)
        if refusals:
            status, fields = refusals.pop(0)
            self._send(handler, status, b"no", fields)
        elif path == f"/api/models/{REPO}/revision/main":
            listing = {
                "sha": self.commit,
                "siblings": [{"rfilename": name} for name in self.listed],
            }
            self._send(handler, 200, json.dumps(listing).encode(), {})
        elif path.startswith(f"/{REPO}/resolve/{self.commit}/"):
            self._file(handler, host, path.split(f"/{self.commit}/", 1)[1])
        else:
            code = {"X-Error-Code": "RepoNotFound"}
            self._send(handler, 404, b"Not Found", code)

    def _file(self, handler, host, name):
        if name not in self.files:
            code = {"X-Error-Code": "EntryNotFound"}
            self._send(handler, 404, b"Entry not found", code)
            return
        content = self.files[name]
        etag = f'"{etag_of(name, content)}"'
        size = str(self.sizes.get(name, len(content)))
        if is_large(name) and host == "hub":
            # Another name of this machine: another host.
            place = f"http://localhost:{self.cdn}{handler.path}"
            fields = {
                "X-Linked-Etag": etag,
                "X-Linked-Size": size,
                "Location": place,
            }
            self._send(handler, 302, b"", fields)
            return
        self._send_part(handler, host, content, {"ETag": etag})

    def _send_part(self, handler, host, content, fields):
        asked = handler.headers.get("Range")
        status = 200
        if host == "cdn":
            content = self.damage(content)
        if asked and not self.ignores_ranges:
            first = int(asked.removeprefix("bytes=").rstrip("-"))
            last = len(content) - 1
            fields["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
            content = content[first:]
            status = 206
        cut = self.cuts.pop(0) if host == "cdn" and self.cuts else None
        self._send(handler, status, content, fields, cut, host == "cdn")

    def _send(self, handler, status, body, fields, cut=None, is_slow=False):
        try:
            handler.send_response(status)
            for name, value in fields.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            if handler.command == "HEAD":
                return
            end = len(body) if cut is None else cut
            for at in range(0, end, PIECE):
                if is_slow and self.stall and at >= len(body) // 2:
                    handler.wfile.flush()
                    self.stall.wait()
                handler.wfile.write(body[at : min(at + PIECE, end)])
                if is_slow:
                    time.sleep(self.pause)
            if cut is not None:
                handler.close_connection = True
                handler.wfile.flush()
                handler.connection.shutdown(2)
        except OSError:
            handler.close_connection = True  # the client has gone
