#!/usr/bin/env python3
"""Builds the Debian package out of a build tree, and installs, starts, reloads, stops and purges it in a container.

    package.py BUILD_TREE

There is no systemd in the container: weird is started by the command line of the unit's ExecStart, as an ordinary
user; the unit itself is read by systemd-analyze. Exits with 77, and says so, where no Docker engine answers.
"""

import atexit
import contextlib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]
IMAGE = "debian:bookworm-slim"
NAME = f"weir-package-{os.getpid()}"
NO_ENGINE = 77
UNIT = "usr/lib/systemd/system/weird.service"


def run(command, timeout=170, **settings):
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **settings)
    assert done.returncode == 0, f"{shlex.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(tree, folder):
    run(["cpack", "--config", tree / "CPackConfig.cmake", "-G", "DEB", "-B", folder])
    (package,) = pathlib.Path(folder).glob("weir_*.deb")
    return package


def check_contents(package, folder):
    fields = run(["dpkg-deb", "-f", package])
    depends = re.search(r"^Depends: (.*)$", fields, re.M).group(1)
    for library in ("libc6", "libgrpc++", "libprotobuf", "libyaml-0-2", "libspdlog"):
        assert library in depends, f"{library} is not in Depends: {depends}"
    run(["dpkg-deb", "-x", package, folder])
    for path in (UNIT, "etc/weir/weir.yaml", "usr/share/weir/alerts.yml", "usr/share/doc/weir/copyright",
                 "usr/share/bash-completion/completions/weirctl", "usr/share/zsh/vendor-completions/_weirctl",
                 "usr/share/fish/vendor_completions.d/weird.fish"):
        assert (folder / path).is_file(), f"{path} is missing"
        assert (folder / path).stat().st_mode & 0o777 == 0o644, path
    assert ".debug_info" not in run(["readelf", "-S", folder / "usr/bin/weird"]), "weird was not stripped"


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(ms|s|min)?", text).groups()
    return int(number) * {"ms": 0.001, "s": 1, "min": 60, None: 1}[unit]


def check_unit(folder):
    unit = (folder / UNIT).read_text()
    config = (ROOT / "tests/daemon/defaults.yaml").read_text()
    drain = seconds(re.search(r"^drain_timeout: (\S+)", config, re.M).group(1))
    assert seconds(re.search(r"^TimeoutStopSec=(\S+)", unit, re.M).group(1)) > drain + 2, "killed before it has drained"
    # What the unit calls is where the package puts it, below `folder`.
    installed = pathlib.Path(folder) / "weird.service"
    installed.write_text(unit.replace("/usr/bin/weird", f"{folder}/usr/bin/weird"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", installed], capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 0 and "weird.service" not in said, said
    # Of 100; what is not hardened at all has more than 90.
    run(["systemd-analyze", "security", "--offline=true", "--threshold=20", installed])


class Container:
    def __init__(self):
        run(["scripts/base-image"], timeout=600, cwd=ROOT)
        atexit.register(subprocess.run, ["docker", "rm", "-f", "-v", NAME], capture_output=True)
        run(["docker", "run", "-d", "--init", "--name", NAME, IMAGE, "sleep", "900"])

    def sh(self, script, **settings):
        return run(["docker", "exec", NAME, "bash", "-euo", "pipefail", "-c", script], **settings)

    def wait_for(self, script):
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(AssertionError):
                return self.sh(script)
            assert time.monotonic() < deadline, f"never came true: {script}\n{self.log()}"
            time.sleep(0.1)

    def log(self):
        return self.sh("cat /tmp/weird.log || true")

    # sudo apt install ./build/release/weir_*.deb
    def install(self, package):
        run(["docker", "cp", package, f"{NAME}:/tmp/weir.deb"])
        self.sh("apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends /tmp/weir.deb")


# sudo systemctl enable --now weird: what systemd would start. sudo systemctl reload weird: what it would run.
def check_running(container):
    start = container.sh(f"sed -n s/^ExecStart=//p /{UNIT}").strip()
    reload = container.sh(f"sed -n s/^ExecReload=//p /{UNIT}").strip()
    assert start.startswith("/usr/bin/weird ") and "$MAINPID" in reload, (start, reload)
    container.sh(f"({shlex.join(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'])} {start} "
                 "2>/tmp/weird.log >&2 & echo $! >/tmp/pid; wait $!; echo $? >/tmp/code) >/dev/null 2>&1 & sleep 0")
    container.wait_for("weirctl ready")
    assert container.sh("weirctl explain /hello").startswith("GET /hello goes ")
    answer = container.sh("exec 3<>/dev/tcp/127.0.0.1/4040; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3")
    assert answer.startswith("HTTP/1.1 502 ") and "upstream_unreachable" in answer, answer
    container.sh("sed -i 's/^default: .*/default: {limit: 7}/' /etc/weir/weir.yaml; MAINPID=$(cat /tmp/pid); " + reload)
    container.wait_for("weirctl config | grep -q '\"limit\": 7' && grep -q 'taken over.*SIGHUP' /tmp/weird.log")
    container.sh("kill -TERM $(cat /tmp/pid)")
    assert container.wait_for("cat /tmp/code").strip() == "0", container.log()


def check_file_is_kept(container):
    container.sh("dpkg -i /tmp/weir.deb && grep -q 'limit: 7' /etc/weir/weir.yaml")
    container.sh("apt-get remove -y -qq weir && ! [ -e /usr/bin/weird ] && grep -q 'limit: 7' /etc/weir/weir.yaml")
    container.sh("dpkg --purge weir && ! [ -e /etc/weir ]")


def engine_answers():
    with contextlib.suppress(FileNotFoundError, subprocess.TimeoutExpired):
        return subprocess.run(["docker", "info"], capture_output=True, timeout=30).returncode == 0
    return False


def main(tree):
    with tempfile.TemporaryDirectory(prefix="weir-package-") as folder:
        folder = pathlib.Path(folder)
        package = build(pathlib.Path(tree).resolve(), folder)
        check_contents(package, folder / "root")
        check_unit(folder / "root")
        if not engine_answers():
            print("*** NO DOCKER ENGINE ANSWERS: the package was built and looked at, but NOT installed and NOT started ***")
            return NO_ENGINE
        container = Container()
        container.install(package)
        container.sh("weird --version; weirctl --version; weird --config /etc/weir/weir.yaml --check")
        container.sh("source /usr/share/bash-completion/completions/weirctl; complete -p weirctl")
        check_running(container)
        check_file_is_kept(container)
    print("the package installs, starts, reloads, stops and goes")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
