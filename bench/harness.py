"""What the benchmarks share: servers started on loopback and ended whatever happens, and a look at the machine.

Everything runs on free ports, from a temporary folder; no system service is touched. Every script exits with
0 goals met, 1 one was missed, 2 none was missed but something could not be measured.
"""

import argparse
import contextlib
import ctypes
import http.client
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import peers

ROOT = Path(__file__).resolve().parent.parent
RELEASE = ROOT / "build/release"
OUTPUT = ROOT / "build/bench"
REMEDIES = {"weird": "make build", "micro_bench": "make bench", "throttle_bench": "make bench",
            "nginx": "apt install nginx-light", "haproxy": "apt install haproxy", "wrk": "apt install wrk", "etcd": "apt install etcd-server",
            "valgrind": "apt install valgrind", "strace": "apt install strace"}
OWN = ("weird", "micro_bench", "throttle_bench")  # programs of this tree; the first tells its version
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# wrk's own report is rounded. With nothing but `done` defined, Lua stays off the request path.
WRK_REPORT = """
done = function(summary, latency) local e = summary.errors
  print(string.format('RESULT {"requests":%d,"microseconds":%d,"bytes":%d,"p50":%d,"p99":%d,"errors":%d}',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.timeout + e.status))
end
"""


class CannotMeasure(Exception):
    """Something other than speed went wrong; there are no figures to show."""


class Processes:
    """The servers and their load, each leading a session of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.children = []

    def close(self):
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not leave some of them running
        for child in self.children:
            child.terminate()
        deadline = time.monotonic() + 3
        for child in self.children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0, deadline - time.monotonic()))
            if any(members(child.pid)):
                os.killpg(child.pid, signal.SIGKILL)

    def write(self, file, text, /, **values):
        for key, value in values.items():
            text = text.replace(f"@{key}@", str(value))
        (self.folder / file).write_text(text)
        return str(self.folder / file)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def start(self, name, argv, core):
        def settle():
            if core is not None:
                os.sched_setaffinity(0, {core})
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG: should this script be killed outright

        environment = {key: value for key, value in os.environ.items() if not key.startswith("WEIR_")}
        with open(self.folder / f"{name}.log", "wb") as out:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.folder,
                                     env=environment, start_new_session=True, preexec_fn=settle)
        self.children.append(child)
        return child

    def serve(self, name, argv, core, port, body, patience=5):
        """Starts a server and returns once it gives the right answer."""
        child = self.start(name, argv, core)
        deadline = time.monotonic() + patience
        while (found := probe(port)) != f"200 with {body} bytes":
            if child.poll() is not None or time.monotonic() > deadline:
                raise CannotMeasure(f"{name} does not serve: {found}\n{self.log(name)}")
            time.sleep(0.05)
        return child

    def serve_upstream(self, nginx, core, port, body, reads=False):
        text, values = peers.upstream_text(port, body, free_ports(1)[0] if reads else None)
        file = self.write("upstream.conf", text, name="upstream", nginx_main="worker_processes 1;", **values)
        return self.serve("upstream", [nginx, *peers.NGINX_FLAGS, file], core, port, body)

    def load(self, argv, core):
        """One run of wrk; returns its counts. A single error makes the whole comparison void."""
        wrk = self.start("wrk", argv, core)
        wrk.wait()
        self.children.remove(wrk)
        counts = json.loads(self.log("wrk").partition("RESULT ")[2] or "{}")
        if wrk.returncode != 0 or not counts.get("requests") or counts["errors"]:
            raise CannotMeasure(f"{shlex.join(argv)} failed:\n{self.log('wrk')}")
        return counts


@contextlib.contextmanager
def processes():
    with tempfile.TemporaryDirectory(prefix="weir-") as home:
        with contextlib.closing(Processes(Path(home))) as started:
            yield started


def probe(port):
    try:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=2)) as connection:
            connection.request("GET", "/")
            answer = connection.getresponse()
            return f"{answer.status} with {len(answer.read())} bytes"
    except (OSError, http.client.HTTPException) as error:
        return repr(error)


def members(session):
    """The fields of /proc/PID/stat after the name, for each process of the session."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            if fields[3] == str(session):
                yield fields


def signal_inner(child, number):
    """To the program that another one, such as strace, runs for us; or to the child itself."""
    inner = [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if parent_of(stat) == child.pid]
    for pid in inner or [child.pid]:
        os.kill(pid, number)


def parent_of(stat):
    with contextlib.suppress(OSError):
        return int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
    return None


def cpu_seconds(session):
    """User and system time of all processes and threads of a session, and of their children that have ended."""
    return sum(int(ticks) for fields in members(session) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def machine_ticks():
    """Time stolen from this machine, and all of its time."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return ticks[7], sum(ticks)


def resident_bytes(pid):
    for line in Path(f"/proc/{pid}/status").read_text().split("\n"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise CannotMeasure(f"process {pid} has ended")


def admin_page(admin, path):
    """What weird's admin address answers."""
    try:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", admin, timeout=10)) as connection:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException) as error:
        raise CannotMeasure(f"weird's admin address: {error!r}") from error


def metric(admin, name):
    """One without labels."""
    for line in admin_page(admin, "/metrics").split("\n"):
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise CannotMeasure(f"weird has no metric {name}")


def status(admin):
    return json.loads(admin_page(admin, "/v1/status"))


def until(what, holds, patience=30):
    """Returns once it holds."""
    deadline = time.monotonic() + patience
    while not holds():
        if time.monotonic() > deadline:
            raise CannotMeasure(f"waited {patience} s in vain until {what}")
        time.sleep(0.01)


def free_ports(count):
    with contextlib.ExitStack() as held:  # until the last one is known, so that no two are the same
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


def share_cores():
    """The proxy has a core to itself; load and upstream share the other one where there are but two."""
    available = sorted(os.sched_getaffinity(0))
    return dict(zip(("proxy", "load", "upstream"), available + available[-1:] * 2))


def find_tools(names, release=RELEASE):
    """Where each program is; `release` holds those of our own."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"  # Debian leaves these out for all but root
    tools = {name: shutil.which(str(release / name) if name in OWN else name, path=path) for name in names}
    missing = [f"{name} is missing: {REMEDIES[name]}" for name, found in tools.items() if not found]
    if missing:
        raise CannotMeasure("\n".join(missing))
    return tools


def describe(tools, cores=None):
    """What a reader needs to judge the figures, or to take them again."""
    def version(name):
        output = subprocess.run([tools[name], "--version" if name in ("weird", "etcd") else "-v"], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True).stdout
        return output.partition("\n")[0]

    models = [line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().split("\n") if "model name" in line]
    about = {"machine": f"{(models or [os.uname().machine])[0]}, {os.cpu_count()} cores, Linux {os.uname().release}, "
                        f"load average at start {os.getloadavg()[0]:.2f}"}
    if cores:
        about["pinning"] = ", ".join(f"{who} on core {core}" for who, core in cores.items())
    versions = [version(name) for name in tools if name not in OWN[1:]]
    if versions:
        about["versions"] = "; ".join(versions)
    about["command"] = command()
    return about


def command():
    """What was called, as one would type it."""
    return shlex.join([f"bench/{Path(sys.argv[0]).name}", *sys.argv[1:]])


def bullets(about):
    return "\n".join(f"- {what}: {text}" for what, text in about.items())


def verdict(missed, goal):
    return f"Goal, {goal}: **{'missed' if missed else 'met'}**"


def table(results, columns):
    """columns: (metric, heading, format); results: by name, the spread of each metric."""
    rows = [["", *(heading for _, heading, _ in columns)]]
    for name, result in results.items():
        rows.append([name, *("{median:F} ({min:F}–{max:F})".replace("F", form).format(**result[metric])
                             for metric, _, form in columns)])
    widths = [max(map(len, column)) for column in zip(*rows)]
    rows.insert(1, ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    return "\n".join("| " + " | ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) + " |"
                     for row in rows)


def publish(name, parts, data, copy=None, show=True):
    """Prints the parts of a report, and leaves it with the figures in build/bench."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(parts) + "\n"
    (OUTPUT / f"{name}.md").write_text(text)
    for file in filter(None, (OUTPUT / f"{name}.json", copy)):
        file.write_text(json.dumps(data, indent=2) + "\n")
    if show:
        print(text, end="", flush=True)


def progress(text):
    print(text, file=sys.stderr, flush=True)


def parser_for(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", type=Path, default=RELEASE, metavar="FOLDER",
                        help="of the build to measure; default build/release")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--quick", action="store_true", help="a shorter run, whose figures are good for a look only")
    return parser


def main(run, args):
    """Ends the script with what run(args) says, whether the goal was missed, as its exit code."""
    for number in SIGNALS:
        signal.signal(number, lambda received, _: sys.exit(128 + received))  # an exception: every `with` is left
    args.release = args.release.absolute()
    try:
        sys.exit(int(bool(run(args))))
    except CannotMeasure as problem:
        print(f"bench/{Path(sys.argv[0]).name}: {problem}", file=sys.stderr)
    except Exception:  # left alone it would end with 1, as if a goal had been missed
        traceback.print_exc()
    sys.exit(2)
