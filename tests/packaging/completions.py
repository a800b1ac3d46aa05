#!/usr/bin/env python3
"""Asks bash, zsh and fish what they complete for weird and weirctl, and compares that with each program's own --help.

    completions.py WEIRD WEIRCTL
"""

import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).parents[2] / "packaging" / "completions"
PATIENCE = 30  # seconds


def run(command, **settings):
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, **settings)


def help_of(program, *command):
    shown = run([program, *command, "--help"])
    assert shown.returncode == 0, shown
    return shown.stdout


def flags_in(text):
    """The long flags that --help lists, each at the start of its line."""
    return set(re.findall(r"^ +(?:-\w,)?(--[a-z][a-z-]*)", text, re.M))


def commands_in(text):
    listed = text.split("Subcommands:")[1].split("\n\n")[0]
    return set(re.findall(r"^  ([a-z]+) ", listed, re.M))


def bash(name, words):
    """What bash offers for the last word, which has been begun."""
    script = (
        f'source "{FOLDER / (name + ".bash")}"; complete -p {name} >/dev/null || exit 1\n'
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}\n'
        f'_{name}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    answer = run(["bash", "-u", "-c", script, "bash", name, *words])
    assert answer.returncode == 0 and not answer.stderr, answer
    return set(answer.stdout.split())


def fish(name, words):
    line = " ".join([name, *words])
    with tempfile.TemporaryDirectory() as home:
        answer = run(["fish", "--no-config", "-c", f'source "{FOLDER / (name + ".fish")}"; complete -C "{line}"'],
                     env={**os.environ, "HOME": home})
    assert answer.returncode == 0 and not answer.stderr, answer
    return {entry.split("\t")[0] for entry in answer.stdout.splitlines()}


class Zsh:
    """One on a terminal of its own, as its completion needs one."""

    def __init__(self, home):
        self.shown = ""
        (pathlib.Path(home) / ".zshrc").write_text(
            f'fpath=("{FOLDER}" $fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=1000\n'
            "PS1='ready> '; unsetopt zle_bracketed_paste prompt_sp; setopt list_packed no_list_beep\n")
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.environ.update(ZDOTDIR=str(home), TERM="dumb", COLUMNS="200", LINES="100")
            os.execvp("zsh", ["zsh", "-i"])
        self.wait_for("ready> ")

    def wait_for(self, *parts):
        """True once all of them have been shown since `shown` was emptied."""
        return self.wait_until(lambda: all(part in self.shown for part in parts))

    def wait_for_prompt_behind(self, part):
        return self.wait_until(lambda: "ready> " in self.shown[self.shown.rindex(part):])

    def wait_until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if not select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))[0]:
                return False
            self.shown += os.read(self.terminal, 65536).decode(errors="replace")
        return True

    def offers(self, line, expected):
        self.shown = ""
        os.write(self.terminal, (line + "\t\t").encode())
        good = self.wait_for(*expected)
        os.write(self.terminal, b"\x15")  # forgets the line
        self.shown = ""
        os.write(self.terminal, b"echo done=$((1+1))\n")
        assert self.wait_for("done=2") and self.wait_for_prompt_behind("done=2"), self.shown
        return good

    def close(self):
        os.write(self.terminal, b"\x15exit\n")
        os.close(self.terminal)


def check(failures, shell, name, words, offered, expected):
    if offered != expected:
        failures.append(f"{shell}: {name} {' '.join(words)}: offers {sorted(offered)}, --help has {sorted(expected)}")


def main(weird, weirctl):
    expected = {("weird", ("--",)): flags_in(help_of(weird)), ("weirctl", ("--",)): flags_in(help_of(weirctl))}
    commands = commands_in(help_of(weirctl))
    assert len(commands) >= 10 and len(expected["weird", ("--",)]) >= 10, expected
    expected["weirctl", ("",)] = commands
    everywhere = expected["weirctl", ("--",)] - {"--version"}
    for command in commands:
        expected["weirctl", (command, "--")] = flags_in(help_of(weirctl, command)) | everywhere
    failures = []
    with tempfile.TemporaryDirectory() as home:
        zsh = Zsh(home)
        for (name, words), wanted in expected.items():
            check(failures, "bash", name, words, bash(name, words), wanted)
            check(failures, "fish", name, words, fish(name, words), wanted)
            if not zsh.offers(" ".join([name, *words]), sorted(wanted)):
                failures.append(f"zsh: {name} {' '.join(words)}: not all of {sorted(wanted)} in {zsh.shown!r}")
        zsh.close()
    for words in [("--log-level", ""), ("--log-format", "")]:
        text = re.search(rf"^ +{words[0]} .*", help_of(weird), re.M).group()
        for value in bash("weird", words):
            assert value in help_of(weird), (text, value)
    print("\n".join(failures) if failures else f"{len(expected)} lines are completed as --help says, by three shells")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
