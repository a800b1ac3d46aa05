#!/usr/bin/env python3
"""Does what the README says of docker-compose.yml, all of it, as it stands there, and sees what it shows.

    documented.py

Addresses alone are not as they stand, but free ones. docker-compose builds images of its own here; where
integration/images was there before, out of the same layers. A command runs on a terminal, as with a person.
tests/readme/readme.py says how blocks are marked.
"""

import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests/readme"))
import readme  # noqa: E402

LONGEST = 1200  # seconds that a command may take: the one that builds the images
PROJECT = f"weir-integration-{os.getpid()}-documented"


class OnATerminal(readme.Reader):
    def __init__(self):
        proxy, prometheus = readme.free_ports(2)
        plugin = subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0
        environment = {**readme.own_environment(), "COMPOSE_PROJECT_NAME": PROJECT, "WEIR_IMAGES": PROJECT, "COLUMNS": "250",
                       "WEIR_PORT": str(proxy), "PROMETHEUS_PORT": str(prometheus)}
        stands_for = {"docker-compose": "docker compose" if plugin else "docker-compose",
                      "127.0.0.1:4040": f"127.0.0.1:{proxy}", "127.0.0.1:9090": f"127.0.0.1:{prometheus}"}
        super().__init__(ROOT, environment, stands_for)
        self.prometheus = f"http://127.0.0.1:{prometheus}/api/v1/query?query="

    def shell(self, line):
        ours, its = pty.openpty()
        process = subprocess.Popen(["bash", "-o", "pipefail", "-c", self.mine(line)], cwd=self.folder, env=self.environment,
                                   stdin=its, stdout=its, stderr=its, start_new_session=True)
        os.close(its)
        said, deadline = b"", time.monotonic() + LONGEST
        try:
            while select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
                said += os.read(ours, 65536)
        except OSError:  # EIO: whoever wrote to it has ended
            pass
        if time.monotonic() >= deadline:
            os.killpg(process.pid, signal.SIGKILL)
        os.close(ours)
        text = said.decode(errors="replace").replace("\r", "")
        readme.expect(time.monotonic() < deadline, f"{line}\ngoes on for more than {LONGEST} s: {text}")
        return process.wait(), text

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


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def there(kind, *more):
    return output_of("docker", kind, "ls", "-q", "--filter", f"label=com.docker.compose.project={PROJECT}", *more).split()


def check_confined():
    """Nobody is root, can do what root can, or writes to the container's own file system."""
    containers = there("container")
    readme.expect(len(containers) == 10, f"{len(containers)} containers")
    for container in json.loads(output_of("docker", "inspect", *containers)):
        name, host = container["Name"], container["HostConfig"]
        readme.expect(host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"], f"{name}: {host}")
        status = output_of("docker", "exec", container["Id"], "cat", "/proc/1/status")
        kept = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        readme.expect("0" not in kept["Uid"].split() and kept["NoNewPrivs"] == "1", f"{name}: {status}")
        readme.expect(all(int(kept[kind], 16) == 0 for kind in ("CapEff", "CapPrm", "CapBnd")), f"{name}: {status}")
        for place in ("/", "/usr/bin", "/etc", "/tmp"):
            tried = subprocess.run(["docker", "exec", "--user", "0", container["Id"], "touch", f"{place}/mark"],
                                   capture_output=True, text=True)
            readme.expect("Read-only file system" in tried.stderr, f"{name} lets {place} be written to: {tried.stderr}")
        if "weird" in name or "etcd" in name:
            readme.expect(container["State"].get("Health", {}).get("Status") == "healthy", f"{name} has no health")


def main():
    remove = ROOT / "integration/remove-project"
    undertaker = subprocess.Popen([remove, PROJECT, "wait"], stdin=subprocess.PIPE)  # which ends with this process
    undertaker.wait()
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
        if "--build" in block:
            check_confined()
    readme.expect(done > 0, "the README says nothing of the cluster")
    left = there("container", "-a") + there("volume") + there("network")
    readme.expect(not left, f"left behind: {left}")
    subprocess.run([remove, PROJECT], check=True)  # the images
    print(f"{done} blocks of the README do as they say")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except readme.Failure as failure:
        sys.exit(f"README: {failure}")
