#!/usr/bin/env python3
"""Checks which way includes run among the source folders: daemon -> proxy -> coordination -> proto.

A folder may include itself and those after it, never one before it, nor tests or benches. Every quoted
include, in tests too, is a path from the root of the repository to a file that is there.

    includes.py [ROOT]      prints file:line for each violation; exit code 1 if there is one
    includes.py --self-test proves on made-up trees that it catches them
"""

import pathlib
import re
import sys
import tempfile

SOURCES = ["daemon", "proxy", "coordination", "proto"]  # each may include those after it
OTHERS = ["tests", "bench", "integration"]  # may include anything
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def files(root):
    for folder in SOURCES + OTHERS:
        yield from sorted(p for p in (root / folder).rglob("*") if p.suffix in {".h", ".cc", ".c"})


def is_there(root, included):
    generated_from = re.sub(r"(\.grpc)?\.pb\.h$", ".proto", included)
    return (root / included).is_file() or (root / generated_from).is_file()


def violation(root, folder, quoted, angled):
    """What is wrong with an include found in `folder`, or None."""
    included = quoted or angled
    to = included.split("/")[0]
    if angled:
        return f"<{angled}> is ours: write it in quotes" if to in SOURCES + OTHERS and is_there(root, angled) else None
    if to not in SOURCES + OTHERS or ".." in included.split("/") or not is_there(root, included):
        return f'"{included}" is no path from the root of the repository to a file'
    if folder not in SOURCES:
        return None
    if to not in SOURCES:
        return f'{folder} must not include "{included}"'
    if SOURCES.index(to) < SOURCES.index(folder):
        return f'{folder} must not include "{included}": includes run {" -> ".join(SOURCES)}'
    return None


def check(root):
    found = []
    for path in files(root):
        name = path.relative_to(root)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            wrong = match and violation(root, name.parts[0], *match.groups())
            if wrong:
                found.append(f"{name}:{number}: {wrong}")
    return found


def self_test():
    good = {
        "daemon/main.cc": '#include <vector>\n#include "daemon/main.h"\n#include "proxy/http/server.h"\n',
        "daemon/main.h": "",
        "proxy/http/server.h": '#include "coordination/limit.h"\n',
        "coordination/limit.h": '#include "proto/etcd.pb.h"\n',
        "proto/etcd.proto": "",
        "tests/daemon/main_test.cc": '#include "daemon/main.h"\n',
    }
    bad = {
        "daemon/a.cc": '\n#include "main.h"\n',
        "daemon/b.cc": '#include "../daemon/main.h"\n',
        "daemon/c.cc": '#include "daemon/no_such.h"\n',
        "daemon/d.cc": '#include "tests/support/x.h"\n',
        "daemon/e.cc": "#include <daemon/main.h>\n",
        "proxy/f.cc": '  #  include "daemon/main.h"\n',
        "coordination/g.cc": '#include "proxy/http/server.h"\n',
        "proto/h.cc": '#include "coordination/limit.h"\n',
        "tests/i.cc": '#include "support/x.h"\n',
        "tests/support/x.h": "",
    }
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        write_tree(root, good)
        assert check(root) == [], check(root)
        write_tree(root, bad)
        caught = [line.split(": ")[0] for line in check(root)]
    expected = [f"{name}:{2 if name == 'daemon/a.cc' else 1}" for name in bad if name != "tests/support/x.h"]
    assert caught == expected, (caught, expected)


def write_tree(root, tree):
    for name, text in tree.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    found = check(pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[2]))
    print("\n".join(found) if found else "includes run one way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
