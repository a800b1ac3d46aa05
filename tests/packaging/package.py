#!/usr/bin/env python3
"""Takes the Debian package that `make package` left in the image of integration/images, and does with it in a container
what the README says, and more: installs, starts, reloads, stops and purges it.

    package.py BUILD_TREE

The unit is run by systemd, which is the container's first process. Where the engine does not let it be that, this is
said, and weird is started by the unit's ExecStart as an ordinary user. systemd-analyze reads the unit in any case.
Where no Docker engine answers, a package is made out of the build tree and looked at, and it says so and exits with 77.
"""

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
sys.path.insert(0, str(ROOT / "tests/readme"))
import readme  # noqa: E402

BUILT = "weir-integration/build"
IMAGE = "debian:bookworm-slim"
NAME = f"weir-package-{os.getpid()}"
LABEL = f"com.docker.compose.project={NAME}"  # by which integration/remove-project finds what is left
NO_ENGINE = 77
FOLDER = "/srv/weir"  # of one who has built it
UNIT = "usr/lib/systemd/system/weird.service"


def run(command, timeout=170, **settings):
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **settings)
    assert done.returncode == 0, f"{shlex.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def packaged(tree, folder, engine):
    if engine:
        run(["docker", "run", "--rm", "--label", LABEL, "-v", f"{folder}:/out", BUILT, "sh", "-c",
             "cp build/release/weir_*.deb /out/"])
    else:
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
    """Debian's base image, and systemd in it where the engine allows that. It must mount, be unhindered by the engine's
    own filter of calls, and look into processes that ProtectProc hides: PrivateUsers is set up from beside them."""

    ALLOWED = ["--cap-add=SYS_ADMIN", "--cap-add=SYS_PTRACE", "--security-opt=seccomp=unconfined",
               "--security-opt=apparmor=unconfined", "--cgroupns=private", "--tmpfs=/run:exec", "--tmpfs=/run/lock"]
    TOOLS = "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends sudo"
    BOOT = (f"{TOOLS} systemd-sysv >/dev/null 2>&1 && mount -o remount,rw /sys/fs/cgroup && container=docker exec /sbin/init")

    def __init__(self):
        self.has_systemd = self.boot()
        if not self.has_systemd:
            subprocess.run(["docker", "rm", "-f", "-v", NAME], capture_output=True)
            run(["docker", "run", "-d", "--init", "--name", NAME, "--label", LABEL, IMAGE, "sleep", "900"])
            self.sh(self.TOOLS)

    def boot(self):
        started = subprocess.run(["docker", "run", "-d", "--name", NAME, "--label", LABEL, *self.ALLOWED, IMAGE, "bash", "-c", self.BOOT],
                                 capture_output=True, text=True)
        why = started.stderr
        if started.returncode == 0:
            with contextlib.suppress(AssertionError):
                self.wait_for("systemctl is-system-running | grep -qE 'running|degraded'", 120)
                return True
            why = self.log()
        print(f"*** SYSTEMD DOES NOT RUN IN A CONTAINER OF THIS ENGINE: the unit was NOT run by it ***\n{why}")
        return False

    def sh(self, script, **settings):
        return run(["docker", "exec", NAME, "bash", "-euo", "pipefail", "-c", script], **settings)

    def runs(self):
        return run(["docker", "inspect", "-f", "{{.State.Running}}", NAME]).strip() == "true"

    def wait_for(self, script, patience=30):
        deadline = time.monotonic() + patience
        while True:
            with contextlib.suppress(AssertionError):
                return self.sh(script)
            assert self.runs() and time.monotonic() < deadline, f"never came true: {script}\n{self.log()}"
            time.sleep(0.1)

    def log(self):
        """What PID 1 said, and weird."""
        said = subprocess.run(["docker", "logs", NAME], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        weird = ["docker", "exec", NAME, "bash", "-c", "cat /tmp/weird.log || journalctl --no-pager -n 50"]
        return said + subprocess.run(weird, capture_output=True, text=True).stdout

    def type(self, line):
        """As somebody does in the folder where `make package` was, who says yes when asked."""
        done = subprocess.run(["docker", "exec", "-i", "-w", FOLDER, NAME, "bash", "-c", line], input="y\n",
                              capture_output=True, text=True, timeout=170)
        assert done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"

    def bring(self, package):
        self.sh(f"mkdir -p {FOLDER}/build/release")
        run(["docker", "cp", package, f"{NAME}:{FOLDER}/build/release/"])
        run(["docker", "cp", package, f"{NAME}:/root/weir.deb"])


def lines_of_the_readme():
    blocks = [block for comment, _, block in readme.blocks_of((ROOT / "README.md").read_text())
              if readme.Marks(comment).runner == "tests/packaging/package.py"]
    assert len(blocks) == 1, "the README has one block on the package"
    lines = [line.strip() for line in blocks[0].splitlines()]
    assert [line.split()[:3] for line in lines] == [["sudo", "apt", "install"], ["sudo", "systemctl", "enable"],
                                                    ["sudo", "systemctl", "reload"]], lines
    return lines


def check_serving(container):
    container.wait_for("weirctl ready")
    assert container.sh("weirctl explain /hello").startswith("GET /hello goes ")
    answer = container.sh("exec 3<>/dev/tcp/127.0.0.1/4040; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3")
    assert answer.startswith("HTTP/1.1 502 ") and "upstream_unreachable" in answer, answer


def edit(limit):
    return f"sed -i 's/^default: .*/default: {{limit: {limit}}}/' /etc/weir/weir.yaml; "


def shown(container, name):
    return container.sh(f"systemctl show -P {name} weird").strip()


def check_unit_runs(container, enable, reload):
    assert container.sh("systemctl is-enabled weird || true").strip() == "disabled", "started before it was told what to protect"
    container.type(enable)
    check_serving(container)
    pid = shown(container, "MainPID")
    check_hardening(container, pid)

    container.sh(edit(7))
    container.type(reload)
    container.wait_for("weirctl config | grep -q '\"limit\": 7' && journalctl -u weird | grep -q 'taken over.*SIGHUP'")
    container.sh(edit("none") + "systemctl reload weird")
    container.wait_for("journalctl -u weird | grep -q 'weir.yaml:.*limit' && weirctl config | grep -q '\"limit\": 7'")
    assert shown(container, "MainPID") == pid, "a reload is no restart"

    container.sh(edit(7) + f"kill -KILL {pid}")
    container.wait_for("[ $(systemctl show -P NRestarts weird) = 1 ] && weirctl ready")
    pid = shown(container, "MainPID")
    container.sh("dpkg -i /root/weir.deb")
    container.wait_for("weirctl ready")
    assert shown(container, "MainPID") not in ("0", pid), "replaced by the new one"

    container.sh(edit("none") + "systemctl restart weird || true")
    container.wait_for("systemctl is-failed weird")
    assert shown(container, "ExecMainStatus") == "1" and shown(container, "NRestarts") == "0", "not for a bad file"
    container.sh(edit(7) + "systemctl start weird")
    container.wait_for("weirctl ready")
    container.sh("systemctl stop weird")
    assert (shown(container, "Result"), shown(container, "ExecMainStatus")) == ("success", "0"), container.log()
    container.sh("systemctl start weird")  # to be stopped by the package's removal


def check_hardening(container, pid):
    status = dict(line.split(":\t", 1) for line in container.sh(f"cat /proc/{pid}/status").splitlines() if ":\t" in line)
    assert "0" not in status["Uid"].split(), status["Uid"]
    assert all(int(status[kind], 16) == 0 for kind in ("CapEff", "CapPrm", "CapBnd", "CapAmb")), status
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), status
    # What root could not do where it is, it cannot; and its /tmp is nobody else's.
    inside = f"nsenter -t {pid} -m "
    for place in ("/etc/weir", "/usr/bin", "/var/lib", "/var/log", "/srv", "/opt", "/"):
        said = container.sh(f"{inside} touch {place}/mark 2>&1 || true")
        assert "Read-only file system" in said, f"{place}: {said}"
    container.sh(f"{inside} touch /tmp/mark; ! [ -e /tmp/mark ]; ! {inside} ls /root/weir.deb 2>/dev/null")
    for node in ("sda", "mem", "kmsg"):
        container.sh(f"! {inside} ls /dev/{node} 2>/dev/null")


# What systemd would start, and run for a reload.
def check_started_without_systemd(container):
    start = container.sh(f"sed -n s/^ExecStart=//p /{UNIT}").strip()
    reload = container.sh(f"sed -n s/^ExecReload=//p /{UNIT}").strip()
    assert start.startswith("/usr/bin/weird ") and "$MAINPID" in reload, (start, reload)
    container.sh(f"({shlex.join(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'])} {start} "
                 "2>/tmp/weird.log >&2 & echo $! >/tmp/pid; wait $!; echo $? >/tmp/code) >/dev/null 2>&1 & sleep 0")
    check_serving(container)
    container.sh(edit(7) + "MAINPID=$(cat /tmp/pid); " + reload)
    container.wait_for("weirctl config | grep -q '\"limit\": 7' && grep -q 'taken over.*SIGHUP' /tmp/weird.log")
    container.sh("kill -TERM $(cat /tmp/pid)")
    assert container.wait_for("cat /tmp/code").strip() == "0", container.log()


def check_file_is_kept(container):
    container.sh("dpkg -i /root/weir.deb && grep -q 'limit: 7' /etc/weir/weir.yaml")
    container.sh("apt-get remove -y -qq weir && ! [ -e /usr/bin/weird ] && grep -q 'limit: 7' /etc/weir/weir.yaml")
    container.sh("! pgrep -x weird")
    container.sh("dpkg --purge weir && ! [ -e /etc/weir ]")


def engine_answers():
    with contextlib.suppress(FileNotFoundError, subprocess.TimeoutExpired):
        return subprocess.run(["docker", "info"], capture_output=True, timeout=30).returncode == 0
    return False


def main(tree):
    # What is left goes with this process, however it ends.
    remove = ROOT / "integration/remove-project"
    with subprocess.Popen([remove, NAME, "wait"], stdin=subprocess.PIPE), tempfile.TemporaryDirectory(prefix="weir-package-") as folder:
        folder = pathlib.Path(folder)
        engine = engine_answers()
        package = packaged(pathlib.Path(tree).resolve(), folder, engine)
        check_contents(package, folder / "root")
        check_unit(folder / "root")
        if not engine:
            print("*** NO DOCKER ENGINE ANSWERS: the package was built and looked at, but NOT installed and NOT started ***")
            return NO_ENGINE
        install, enable, reload = lines_of_the_readme()
        container = Container()
        container.bring(package)
        container.type(install)
        container.sh("weird --version; weirctl --version; weird --config /etc/weir/weir.yaml --check")
        container.sh("source /usr/share/bash-completion/completions/weirctl; complete -p weirctl")
        if container.has_systemd:
            check_unit_runs(container, enable, reload)
        else:
            check_started_without_systemd(container)
        check_file_is_kept(container)
        print(f"the package installs, starts, reloads, stops and goes{', by systemd' if container.has_systemd else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
