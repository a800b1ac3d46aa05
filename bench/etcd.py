"""An etcd of one member, and how much it is asked."""

import contextlib
import http.client
import time

import harness


def start(processes, etcd, core):
    """Returns its port once it serves."""
    port, peer = harness.free_ports(2)
    client, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    child = processes.start("etcd", [etcd, "--data-dir", f"etcd-{port}", "--listen-client-urls", client,
                                     "--advertise-client-urls", client, "--listen-peer-urls", peers,
                                     "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"], core)
    deadline = time.monotonic() + 15
    while transactions(port) is None:
        if child.poll() is not None or time.monotonic() > deadline:
            raise harness.CannotMeasure(f"etcd does not serve:\n{processes.log('etcd')}")
        time.sleep(0.1)
    return port


def transactions(port):
    """That it has answered so far; nothing if it does not."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().split("\n")
        return sum(float(line.rpartition(" ")[2]) for line in lines
                   if line.startswith("grpc_server_handled_total{") and 'grpc_method="Txn"' in line)
    return None
