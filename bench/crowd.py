"""Clients of our own, for what wrk cannot do: to wait in tens of thousands, and to ask for each path once."""

import contextlib
import resource
import select
import socket
import time

import harness
from harness import CannotMeasure

QUEUE_LIMIT = 100  # of the resource that waiters ask for, per window
STEP = 1000  # connections at a time: the kernel keeps at most 4096 that weird has not accepted
PER_ADDRESS = 5000  # connections from one source address: of 28,000 ports, a free one is found at once
SPARE = 1000  # descriptors and connections for everything else
PIPELINED = 50  # requests sent at once on each connection that visits paths
VISITORS = 16


class Crowd:
    """Clients that each ask for one path and leave when they are answered."""

    def __init__(self, port, path):
        self.port = port
        self.request = f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()
        self.joined = 0
        self.waiting = {}  # sockets by descriptor
        self.answers = []  # when each came, by the wall clock, which windows go by
        self.epoll = select.epoll()

    def close(self):
        for one in self.waiting.values():
            one.close()
        self.waiting.clear()
        self.epoll.close()

    def connect(self, count):
        """As many more clients, which have not asked yet."""
        for _ in range(count):
            client = socket.socket()
            client.settimeout(10)
            client.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT: connect() chooses it
            client.bind((f"127.0.0.{2 + self.joined // PER_ADDRESS}", 0))
            client.connect(("127.0.0.1", self.port))
            self.joined += 1
            yield client

    def join(self, count):
        for client in self.connect(count):
            client.sendall(self.request)
            client.setblocking(False)
            self.waiting[client.fileno()] = client
            self.epoll.register(client, select.EPOLLIN)

    def collect(self, until):
        """Notes who is answered up to a time of the wall clock."""
        while True:
            ready = self.epoll.poll(max(0, until - time.time()), 1024)
            now = time.time()
            for descriptor, _ in ready:
                client = self.waiting.pop(descriptor)
                with client:
                    answer = client.recv(65536)
                if not answer.startswith(b"HTTP/1.1 200 "):
                    raise CannotMeasure(f"a waiting request was answered {answer[:1000]!r}")
                self.answers.append(now)
            if now >= until:
                return


def line_up(crowd, count, admin):
    """Returns when `count` more have asked and all who were not answered wait in weird's line."""
    while count > 0:
        step = min(count, STEP)
        crowd.join(step)
        count -= step
        deadline = time.monotonic() + 30
        while True:
            crowd.collect(0)
            waiting = int(harness.metric(admin, "weir_waiting"))
            if waiting == len(crowd.waiting):
                break
            if time.monotonic() > deadline:
                raise CannotMeasure(f"{len(crowd.waiting)} were not answered, but weird says that {waiting} wait")
            time.sleep(0.01)


def raise_descriptors(connections):
    """For so many connections, here and in weird; returns how many there can be."""
    needed = connections + QUEUE_LIMIT + SPARE
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(hard, needed)))
        return connections
    except ValueError:  # only who has CAP_SYS_RESOURCE may have more than the hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard - QUEUE_LIMIT - SPARE


def shortfall(possible, wanted):
    """In words, that there are fewer than wanted; nothing if there are not."""
    if possible < wanted:
        return f"{possible:,} requests wait instead of {wanted:,}: the machine allows no more file descriptors (ulimit -Hn)"
    return None


class Visitor:
    """One connection, on which requests are sent a batch at a time."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.received = b""

    def close(self):
        self.socket.close()

    def send(self, paths):
        self.socket.sendall(b"".join(b"GET /path/%d HTTP/1.1\r\nHost: bench\r\n\r\n" % path for path in paths))

    def statuses(self, count):
        """Of the next so many answers."""
        for _ in range(count):
            while (end := self.received.find(b"\r\n\r\n")) < 0:
                self.receive()
            head = self.received[:end].lower()
            length = head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]
            if not length:
                raise CannotMeasure(f"an answer without a length: {head!r}")
            whole = end + 4 + int(length)
            while len(self.received) < whole:
                self.receive()
            self.received = self.received[whole:]
            yield int(head.split(b" ", 2)[1])

    def receive(self):
        some = self.socket.recv(65536)
        if not some:
            raise CannotMeasure("the server closed a connection")
        self.received += some


@contextlib.contextmanager
def visitors(port):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contextlib.closing(Visitor(port))) for _ in range(VISITORS)]


def ask(clients, paths, counts):
    """Asks for each path of the range once and counts the answers by status."""
    for first in range(paths.start, paths.stop, VISITORS * PIPELINED):
        batches = []
        for number, client in enumerate(clients):
            begin = first + number * PIPELINED
            batch = range(begin, min(begin + PIPELINED, paths.stop))
            if batch:
                client.send(batch)
                batches.append((client, len(batch)))
        for client, count in batches:
            for status in client.statuses(count):
                if status not in counts:
                    raise CannotMeasure(f"an answer {status}")
                counts[status] += 1


def visit(port, paths):
    """Each path once, so that every one is known."""
    with visitors(port) as clients:
        ask(clients, paths, {200: 0})
