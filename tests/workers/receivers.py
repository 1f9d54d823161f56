"""Real servers that take what a keeper sends: one speaks HTTP, one SMTP; both keep it."""

from __future__ import annotations

import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Taken:
    """One call that came in."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """What came in, and what is answered next: the last answer is given for ever."""

    port: int = 0
    answers: list[int] = field(default_factory=lambda: [204])
    calls: list[Taken] = field(default_factory=list)
    mails: list[Message] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)

    def answer(self) -> int:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def http_receiver(certificate: Path | None = None) -> Iterator[Receiver]:
    """An HTTP server on a free port of this machine; encrypted with the key in `certificate`."""
    told = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.calls.append(Taken(self.path, dict(self.headers.items()), body))
            status = told.answer()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"http://127.0.0.1:{told.port}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """The tests' output is no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    told.port = server.server_address[1]
    with _served(server):
        yield told


@contextmanager
def smtp_receiver() -> Iterator[Receiver]:
    """A mail server on a free port of this machine; it answers 250 or what `answers` says."""
    told = Receiver(answers=[250])

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 test")
            while line := self.rfile.readline().decode().strip():
                word = line.upper()
                if word.startswith("RCPT"):
                    status = told.answer()
                    told.recipients.append(line.partition(":")[2])
                    self._say(f"{status} {'ok' if status == 250 else 'no such mailbox'}")
                elif word == "DATA":
                    self._say("354 go on")
                    told.mails.append(message_from_bytes(self._data()))
                    self._say("250 taken")
                elif word == "QUIT":
                    self._say("221 bye")
                    return
                else:
                    self._say("250 ok")

        def _data(self) -> bytes:
            lines = []
            while (line := self.rfile.readline()) != b".\r\n":
                lines.append(line)
            return b"".join(lines)

        def _say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    told.port = server.server_address[1]
    with _served(server):
        yield told


@contextmanager
def _served(server: socketserver.TCPServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
