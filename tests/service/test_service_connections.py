"""Clients that begin and never end, too many of them, and those that speak half of HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from pathlib import Path

import httpx
import psutil
import pytest

from ptad.service.connections import Connections
from ptad.service.logs import SparseLog
from ptad.service.server import listen
from ptad.service.settings import Limits, ServiceSettings
from stopping import HANG, wait_until

HALF = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


class Clients(contextlib.ExitStack):
    """Raw connections to a service, closed at the end."""

    def __init__(self, service):
        super().__init__()
        self.port = int(service.url.rpartition(":")[2])

    def open(self, *sent):
        client = self.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=HANG))
        for part in sent:
            client.sendall(part)
        return client

    def answer(self, *sent):
        """Everything that the service says until it closes the connection."""
        return read_all(self.open(*sent))


def read_all(client):
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while block := client.recv(65536):
            received += block
    return received.decode()


@pytest.fixture(scope="module")
def tight(start):
    """A service that has little patience and few connections."""
    names = {"connections": 8, "connections_per_address": 8, "header_seconds": 0.3, "body_window_seconds": 0.3}
    return start(*(part for name, value in names.items() for part in ("--limit", f"{name}={value}")))


def health(service):
    with httpx.Client(base_url=service.url, timeout=HANG) as http:  # a connection of its own
        return http.get("/health").status_code


def test_a_header_has_to_arrive_in_time(tight):
    with Clients(tight) as clients:
        silent = clients.open()
        assert "408" in clients.answer(HALF).split("\r\n")[0]
        assert read_all(silent) == ""  # nothing was asked: nothing is answered
        # also when a request came before on the same connection, and when an answer came before the body
        again = clients.answer(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", HALF)
        assert re.findall(r"HTTP/1.1 (\d+)", again) == ["200", "408"]
        early = clients.answer(b"POST /nothing HTTP/1.1\r\nHost: evil\r\nContent-Length: 100\r\n\r\n", b"x")
        assert re.findall(r"HTTP/1.1 (\d+)", early) == ["403"]


def test_a_body_has_to_arrive_in_time(tight):
    head = b"POST /v1/tables HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: 9000000\r\n\r\n"
    with Clients(tight) as clients:
        text = clients.answer(head, b"a,b\n")
        assert "408" in text.split("\r\n")[0] and "bytes per second" in text


def test_half_open_connections_make_room_for_others(start):
    service = start("--limit", "connections=20", "--limit", "connections_per_address=20")
    with Clients(service) as clients:
        for _ in range(3):
            for _ in range(30):
                clients.open(HALF)
            assert health(service) == 200
    log = service.log.read_text()
    assert "one without a request was closed" in log and "Traceback" not in log
    assert log.count("one without a request was closed") < 10


@pytest.mark.slow
def test_no_descriptors_left_is_no_flood_of_the_log(start, csv_bytes):
    service = start("--limit", "connections=100000", "--limit", "connections_per_address=100000")
    uploaded = service.http.post("/v1/tables", content=csv_bytes, headers={"Content-Type": "text/csv"})
    assert uploaded.status_code < 300, uploaded.text  # the process that reads tables has started
    process = psutil.Process(service.process.pid)
    if not hasattr(process, "rlimit"):
        pytest.skip("the limits of another process are set on Linux only")
    before = service.log.stat().st_size
    process.rlimit(psutil.RLIMIT_NOFILE, (process.num_fds() + 20, process.num_fds() + 20))
    with Clients(service) as clients:
        for _ in range(60):
            clients.open(HALF)
        wait_until(lambda: "no descriptor was free" in service.log.read_text(), service.log.read_text)
        assert health(service) == 200
    text = service.log.read_text()[before:]
    assert "Traceback" not in text and len(text) < 2000, text[:3000]


def test_two_lengths_end_the_connection(tight):
    lengths = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    with Clients(tight) as clients:
        request = b"POST /v1/fits HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + lengths
        text = clients.answer(request, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert re.findall(r"HTTP/1.1 (\d+)", text) == ["400"] and "both Content-Length and Transfer" in text
        text = clients.answer(b"\x16\x03\x01 this is TLS\r\n\r\n")
        assert "HTTP/1.1 400" in text and "problem+json" in text


def test_clients_that_leave_are_no_errors(start, csv_bytes):
    service = start()
    head = b"POST /v1/tables HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: 9000000\r\n\r\n"
    with Clients(service) as clients:
        for _ in range(3):
            clients.open(head, csv_bytes).close()
    counted = 'ptad_requests_total{method="POST",route="/v1/tables"'
    wait_until(lambda: f'{counted},status="400"}} 3.0' in service.http.get("/metrics").text, service.log.read_text)
    text = service.log.read_text()[service.start :]
    assert "unexpected" not in text and "error" not in text.lower(), text


def test_a_client_that_leaves_while_its_table_is_read_leaves_nothing(start, model_folder, csv_bytes):
    service = start(model_folder)
    (name,) = [model["id"] for model in service.http.get("/v1/models").json()]
    head = f"POST /v1/models/{name}/score?append=true HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n"
    for _ in range(3):
        with Clients(service) as clients:
            client = clients.open(f"{head}Content-Length: {len(csv_bytes)}\r\n\r\n".encode(), csv_bytes)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # reset, no orderly end
    ended = re.compile(r'requests_total{method="POST",route="/v1/models/{model}/score",status="\d+"} 3.0')
    wait_until(lambda: ended.search(service.http.get("/metrics").text), service.log.read_text)
    assert list((service.store / "tmp").iterdir()) == []


def test_a_method_of_any_length_is_a_short_line_of_the_log(service):
    method = b"A" * 60_000
    with Clients(service) as clients:
        assert " 405 " in clients.answer(method + b" /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert len(max(service.log.read_text().splitlines(), key=len)) < 1000


class Fake:
    """What a registry asks of a connection."""

    def __init__(self, address, since, waiting=True, answered=False):
        self.address, self.since, self.is_waiting, self.dropped = address, since, waiting, False
        self.transport, self.stuck_since, self.answered = self, None, answered

    def abort(self):
        self.dropped = True

    def is_slow(self, now, speed):
        return False


def test_the_longest_waiting_connection_of_a_crowded_address_goes_first():
    connections = Connections(Limits(connections=4, connections_per_address=2))
    other, busy, waiting = Fake("b", 0), Fake("a", 1, waiting=False), Fake("a", 2)
    assert all(map(connections.admit, (other, busy, waiting)))
    assert connections.admit(Fake("a", 3)) and waiting.dropped and not (other.dropped or busy.dropped)
    assert connections.admit(Fake("c", 4)) and len(connections) == 4
    assert connections.admit(Fake("d", 5)) and other.dropped  # full: the longest waiting of all
    loyal, new = Fake("e", 0, answered=True), Fake("e", 1)
    pair = Connections(Limits(connections=2))
    assert pair.admit(loyal) and pair.admit(new)
    assert pair.admit(Fake("f", 2)) and new.dropped and not loyal.dropped  # one that never had an answer goes before
    full = Connections(Limits(connections=1))
    assert full.admit(Fake("a", 0, waiting=False)) and not full.admit(Fake("b", 1))


def test_a_client_that_takes_nothing_is_let_go():
    now = [0.0]
    connections = Connections(Limits(stall_seconds=30), clock=lambda: now[0])
    stuck = Fake("a", 0, waiting=False)
    stuck.is_late = lambda *_: False
    connections.admit(stuck)
    stuck.stuck_since = 0.0
    for moment, dropped in ((29.0, False), (31.0, True)):
        now[0] = moment
        connections.sweep()
        assert stuck.dropped is dropped
    assert len(connections) == 0


def test_lines_that_clients_cause_are_rare(monkeypatch, caplog):
    import logging

    now = [100.0]
    monkeypatch.setattr("ptad.service.logs.time.monotonic", lambda: now[0])
    logger = logging.getLogger("ptad.test.sparse")
    logger.filters[:] = [SparseLog()]
    for _ in range(500):
        logger.warning("a client did %s", "this")
    now[0] += 11
    logger.warning("a client did %s", "this")
    logger.warning("quoted", exc_info=ValueError("secret"))
    assert [r.getMessage() for r in caplog.records] == [
        "a client did this",
        "a client did this (499 more times since the last line)",
    ]


def test_a_client_that_goes_on_sending_has_its_answer_before_the_connection_is_closed(service):
    """A connection that is closed while bytes arrive is reset, and what it had to say is lost."""
    size = 2**21
    head = (
        f"POST /v1/fits HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    )
    with Clients(service) as clients:
        client = clients.open(head.encode())
        received = b""
        while b"\r\n\r\n" not in received or not received.endswith(b"}"):
            received += client.recv(65536)
        assert received.startswith(b"HTTP/1.1 413") and b"connection: close" in received.lower()
        for _ in range(32):
            client.sendall(b" " * (size // 32))
        assert client.recv(1) == b""


def test_answers_are_sent_at_once():
    """Without TCP_NODELAY the body of an answer waits until the client has acknowledged its header: 40 ms."""

    async def set_on_accepted():
        option = asyncio.get_running_loop().create_future()

        async def accepted(reader, writer):
            option.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = listen(ServiceSettings(Path("store"), port=0))
        async with await asyncio.start_server(accepted, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            writer.close()
            return await asyncio.wait_for(option, HANG)

    assert asyncio.run(set_on_accepted()) != 0
