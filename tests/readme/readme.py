#!/usr/bin/env python3
"""Does what the README says, in its order, and fails where that does not work.

    readme.py WEIRD WEIRCTL

Every `sh` block is run, each line by a shell of its own that must succeed; `make run` and `weird …` go on in the
background until the next of them. Ports of the text stand for free ones, its etcd for a real one of ours. A comment
before a block, its parts joined by `; `, says more:

    run by FILE: COMMAND; COMMAND   not here, but by FILE, which must name them and belong to CI's tests
    run by FILE                     all of the block, by FILE, which may follow it as is done here, but elsewhere
    shows: REGEX; REGEX             all of which its output must match; always the last part
    until it shows: REGEX; REGEX    the same, and its last line is run again until they do
    before: COMMAND                 run first
    file: NAME                      the last `yaml` block is there, under that name
    in the first N of M s           begins when a window of M seconds has just begun

Every `yaml` block goes through `weird --check`, every `promql` query and alert rule through promtool; the metrics they
and the README's table name are those that the daemon has.
"""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]
PATIENCE = 60  # seconds
BLOCK = re.compile(r"(?:^<!-- ([^\n]*) -->\n)?^```([a-z]*)\n(.*?)^```$", re.M | re.S)
METRIC = re.compile(r"\bweir_[a-z_]+")


class Failure(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failure(text)


class Marks:
    """What the comment before a block says."""

    def __init__(self, comment):
        self.runner, self.elsewhere, self.file, self.before, self.fresh = None, [], None, None, None
        said = re.fullmatch(r"(.*?)(?:(until it )?shows: (.*))?", comment or "")
        self.shows, self.again = said[3].split("; ") if said[3] else [], bool(said[2])
        parts = [part for part in said[1].split("; ") if part]
        run_by = re.fullmatch(r"run by ([^\s:;]+)(: .*)?", parts[0]) if parts else None
        if run_by:
            self.runner = run_by[1]
            self.elsewhere = [run_by[2][2:], *parts[1:]] if run_by[2] else []
            check_elsewhere(self.runner, self.elsewhere)
            parts = [] if run_by[2] else parts[1:]
        self.whole = bool(self.runner) and not self.elsewhere
        for part in parts:
            name, _, value = part.partition(": ")
            fresh = re.fullmatch(r"in the first (\d+) of (\d+) s", part)
            expect(fresh or name in ("file", "before"), f"a comment before a block says {part!r}")
            self.file = value if name == "file" else self.file
            self.before = value if name == "before" else self.before
            self.fresh = (int(fresh[1]), int(fresh[2])) if fresh else self.fresh

    def missing(self, output):
        return [pattern for pattern in self.shows if not re.search(pattern, output, re.M)]


def check_elsewhere(name, commands):
    path = ROOT / name
    expect(path.is_file(), f"{name} is to run a block, and is not there")
    lists = [ROOT / "tests/CMakeLists.txt", path.parent / "CMakeLists.txt"]
    listed = any(re.search(rf"{re.escape(path.name)}|GLOB \w+ CONFIGURE_DEPENDS \*{re.escape(path.suffix)}\b", text.read_text())
                 for text in lists if text.is_file())
    expect(name == ".ci/run" or listed, f"{name} is to run a block, and no test runs it")
    for command in commands:
        expect(command in path.read_text(), f"{name} is to run {command!r}, and does not name it")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Background:
    """A program that goes on; its output in a file."""

    def __init__(self, command, log, **settings):
        self.log = log
        with open(log, "wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True, **settings)

    def output(self):
        return self.log.read_text(errors="replace")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        finally:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def own_environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("WEIR")}


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        expect(time.monotonic() < deadline, f"never came true: {what()}")
        time.sleep(0.05)


class Reader:
    """Somebody who follows the README: what it says, in a folder, where some words of it stand for others."""

    def __init__(self, folder, environment, stands_for):
        self.folder, self.environment, self.stands_for, self.yaml = folder, environment, stands_for, ""

    def succeeds(self, command):
        return subprocess.run(command, env=self.environment, capture_output=True, timeout=PATIENCE).returncode == 0

    def mine(self, line):
        for text, meaning in self.stands_for.items():
            line = line.replace(text, meaning)
        return line

    def shell(self, line):
        """How it ended and what it said."""
        done = subprocess.run(["bash", "-o", "pipefail", "-c", self.mine(line)], cwd=self.folder, env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              timeout=2 * PATIENCE)
        return done.returncode, done.stdout.decode(errors="replace")

    def run(self, line):
        code, text = self.shell(line)
        expect(code == 0, f"{line}\nexits with {code}: {text}")
        return text

    def do(self, command):
        return self.run(command)

    def follow(self, block, marks):
        def wait_for_window():
            if marks.fresh:
                wait_until(lambda: time.time() % marks.fresh[1] < marks.fresh[0], lambda: "a window that has just begun")

        if marks.file:
            (self.folder / marks.file).write_text(self.mine(self.yaml))
        if marks.before:
            self.run(marks.before)
        lines = [line.strip() for line in block.replace("\\\n", "").splitlines()]
        commands = [line for line in lines if line and not line.startswith(("#", *marks.elsewhere))]
        if not marks.again:
            wait_for_window()
        output = ""
        for command in commands[:-1] if marks.again else commands:
            output += self.do(command)

        def shown_now():
            nonlocal output
            wait_for_window()
            output = self.shell(commands[-1])[1]
            return not marks.missing(output)

        if marks.again:
            wait_until(shown_now, lambda: f"{commands[-1]} shows {marks.missing(output)} but only\n{output}")
        expect(not marks.missing(output), f"{block}\ndoes not show {marks.missing(output)} but\n{output}")

    def check_yaml(self, block):
        self.yaml = block
        file = self.folder / "block.yaml"
        file.write_text(block)
        self.run(f"weird --config {file} --check")


class OnOneMachine(Reader):
    """Who follows it from its top, with a daemon, an upstream and an etcd."""

    def __init__(self, folder, weird, weirctl):
        self.weird, self.weirctl, self.daemon = weird, weirctl, None
        listen, admin, client, peer = free_ports(4)
        etcd = f"http://127.0.0.1:{client}"
        self.etcd = Background(
            ["etcd", "--data-dir", folder / "etcd", "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
             "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
             "--initial-cluster", f"default=http://127.0.0.1:{peer}"], folder / "etcd.log")
        self.upstream = Background([ROOT / "scripts/demo-upstream", "0"], folder / "upstream.log")
        wait_until(lambda: self.upstream.output().startswith("http"), self.upstream.output)
        environment = {
            **own_environment(),
            "PATH": f"{weird.parent}:{weirctl.parent}:{os.environ['PATH']}", "WEIRD": str(weird),
            "WEIR_LISTEN": f"127.0.0.1:{listen}", "WEIR_ADMIN": f"127.0.0.1:{admin}",
            "ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": etcd}
        stands_for = {
            "127.0.0.1:4040": f"127.0.0.1:{listen}", "127.0.0.1:9464": f"127.0.0.1:{admin}",
            "http://127.0.0.1:9000": self.upstream.output().strip(), "build/release/weirctl": str(weirctl),
            "http://etcd1:2379,http://etcd2:2379,http://etcd3:2379": etcd}
        super().__init__(folder, environment, stands_for)
        wait_until(lambda: self.succeeds(["etcdctl", "endpoint", "health"]), self.etcd.output)

    def do(self, command):
        goes_on = command.startswith(("make run", "weird ")) and not re.search(r"--(check|help|version)\b", command)
        return self.start(command) if goes_on else self.run(command)

    def start(self, line):
        self.stop_daemon()
        command = str(ROOT / "scripts/run") if line.split("#")[0].strip() == "make run" else "exec " + self.mine(line)
        self.daemon = Background(["bash", "-c", command], self.folder / "daemon.log", cwd=self.folder, env=self.environment)
        wait_until(lambda: self.succeeds([self.weirctl, "ready"]), self.daemon.output)
        return self.daemon.output()

    def stop_daemon(self):
        if self.daemon:
            expect(self.daemon.stop() == 0, f"weird did not stop well: {self.daemon.output()}")
        self.daemon = None

    def close(self):
        try:
            self.stop_daemon()
        finally:
            self.upstream.stop()
            self.etcd.stop()


def blocks_of(readme):
    """The comment, the kind and the text of each."""
    blocks = BLOCK.findall(readme)
    expect(readme.count("```") == 2 * len(blocks), "a block is not read as one")
    return blocks


def queries_in(block):
    return [line for line in block.splitlines() if line and not line.startswith("#")]


def check_queries(queries, folder):
    rules = [{"record": f"readme:{i}", "expr": query} for i, query in enumerate(queries)]
    file = folder / "queries.yml"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "readme", "rules": rules}]}))
    for rules_file in (file, ROOT / "packaging/alerts.yml"):
        done = subprocess.run(["promtool", "check", "rules", rules_file], capture_output=True, text=True)
        expect(done.returncode == 0, done.stdout + done.stderr)


def check_metrics(readme, queries):
    known = set(re.findall(r'"(weir_[a-z_]+)"', (ROOT / "daemon/metrics.cc").read_text()))
    table = {name for row in re.findall(r"^\| `weir_[^|]*\|", readme, re.M) for name in METRIC.findall(row)}
    expect(table == known, f"the README's table and the daemon's metrics differ: {sorted(table ^ known)}")
    alerts = re.sub(r"^ *(summary|#).*$", "", (ROOT / "packaging/alerts.yml").read_text(), flags=re.M)
    for name in METRIC.findall(alerts + "\n".join(queries)):
        expect(re.sub(r"_(bucket|sum|count)$", "", name) in known or name in known, f"there is no metric {name}")


def check_links(readme):
    anchors = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", readme, re.M)}
    for link in re.findall(r"\]\(([^)]+)\)", readme):
        good = link[1:] in anchors if link.startswith("#") else (ROOT / link).is_file()
        expect(good or "://" in link, f"a link leads nowhere: {link}")


def main(weird, weirctl):
    readme = (ROOT / "README.md").read_text()
    blocks = blocks_of(readme)
    queries = [query for _, kind, block in blocks if kind == "promql" for query in queries_in(block)]
    expect(len(queries) >= 3, "queries are missing")
    check_links(readme)
    check_metrics(readme, queries)
    with tempfile.TemporaryDirectory(prefix="weir-readme-") as folder:
        check_queries(queries, pathlib.Path(folder))
        reader = OnOneMachine(pathlib.Path(folder), pathlib.Path(weird).resolve(), pathlib.Path(weirctl).resolve())
        try:
            for comment, kind, block in blocks:
                expect(kind in ("", "sh", "yaml", "promql"), f"nobody knows what to do with {kind}")
                marks = Marks(comment)
                if kind == "sh" and not marks.whole:
                    reader.follow(block, marks)
                elif kind == "yaml":
                    reader.check_yaml(block)
        finally:
            reader.close()
    print(f"{len(blocks)} blocks of the README do as they say")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"README: {failure}")
