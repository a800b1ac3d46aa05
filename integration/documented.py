#!/usr/bin/env python3
"""Does what the README says of docker-compose.yml, all of it, as it stands there, and sees what it shows.

    documented.py

Two things are not as they stand: weird is not compiled in an image (integration/images has made them), and addresses
are free ones. A command runs on a terminal, as with a person. tests/readme/readme.py says how blocks are marked.
"""

import json
import os
import pathlib
import pty
import subprocess
import sys
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests/readme"))
import readme  # noqa: E402

PROJECT = f"weir-integration-{os.getpid()}-documented"


class OnATerminal(readme.Reader):
    def __init__(self):
        proxy, prometheus = readme.free_ports(2)
        plugin = subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0
        environment = {**readme.own_environment(), "COMPOSE_PROJECT_NAME": PROJECT, "WEIR_IMAGES": "weir-integration", "COLUMNS": "250",
                       "WEIR_PORT": str(proxy), "PROMETHEUS_PORT": str(prometheus)}
        stands_for = {"docker-compose": "docker compose" if plugin else "docker-compose", "--build": "--no-build",
                      "127.0.0.1:4040": f"127.0.0.1:{proxy}"}
        super().__init__(ROOT, environment, stands_for)
        self.prometheus = f"http://127.0.0.1:{prometheus}/api/v1/query?query="

    def shell(self, line):
        ours, its = pty.openpty()
        process = subprocess.Popen(["bash", "-o", "pipefail", "-c", self.mine(line)], cwd=self.folder, env=self.environment,
                                   stdin=its, stdout=its, stderr=its, start_new_session=True)
        os.close(its)
        said = b""
        try:
            while part := os.read(ours, 65536):
                said += part
        except OSError:  # EIO: whoever wrote to it has ended
            pass
        os.close(ours)
        return process.wait(), said.decode(errors="replace").replace("\r", "")

    def ask(self, block, marks):
        """Prometheus, until it shows what it should."""
        def answered():
            answers = "".join(f"{query}\n{self.answer(query)}" for query in readme.queries_in(block))
            return not marks.missing(answers)

        readme.wait_until(answered, lambda: f"{marks.shows} in {block}")

    def answer(self, query):
        """A line for each series: its labels and its value."""
        try:
            with urllib.request.urlopen(self.prometheus + urllib.parse.quote(query)) as page:
                found = json.load(page)["data"]["result"]
        except OSError:
            return ""
        return "".join(" ".join([*(f"{name}={value}" for name, value in sorted(one["metric"].items())), one["value"][1]]) + "\n"
                       for one in found)


def left():
    mine = f"label=com.docker.compose.project={PROJECT}"
    return [line for kind in ("container", "volume", "network")
            for line in subprocess.run(["docker", kind, "ls", "-q", "--filter", mine, *(["-a"] if kind == "container" else [])],
                                       capture_output=True, text=True, check=True).stdout.split()]


def main():
    # Removes all of it when this process ends, however it does.
    undertaker = subprocess.Popen([ROOT / "integration/remove-project", PROJECT, "wait"], stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    reader = OnATerminal()
    done = 0
    for comment, kind, block in readme.blocks_of((ROOT / "README.md").read_text()):
        marks = readme.Marks(comment)
        if marks.runner != "integration/documented.py":
            continue
        print(block, flush=True)
        done += 1
        if kind == "sh":
            reader.follow(block, marks)
        else:
            reader.ask(block, marks)
    readme.expect(done > 0, "the README says nothing of the cluster")
    readme.expect(not left(), f"left behind: {left()}")
    undertaker.stdin.close()
    undertaker.wait()
    print(f"{done} blocks of the README do as they say")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except readme.Failure as failure:
        sys.exit(f"README: {failure}")
