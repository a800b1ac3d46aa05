#!/usr/bin/env python3
"""Forbids real clocks, sleeps and global random in the sources, so that tests decide what time it is.

Time and random numbers come from daemon/system.cc alone and are passed down. The HTTP engine and the
coordination thread may arm Asio's timers, with a duration from now and nothing else. Comments and strings are not looked at.

    real_time.py [ROOT]      prints file:line for each violation; exit code 1 if there is one
    real_time.py --self-test proves on made-up trees that it catches them
"""

import pathlib
import re
import sys
import tempfile

FOLDERS = ["daemon", "proxy", "coordination"]
OWNER = "daemon/system.cc"
OWNER_HEADER = "daemon/system.h"  # what the owner declares: an engine, but no clock
TIMER_FOLDER = "proxy/http/"
TIMER_FILES = {"daemon/coordination_thread.h", "daemon/coordination_thread.cc"}

FORBIDDEN = [
    (r"\b\w*clock(_type)?::now\b", "a real clock"),
    (r"\bhigh_resolution_clock\b", "a real clock"),
    (r"\b(gettimeofday|clock_gettime|timespec_get|ftime)\s*\(", "a real clock"),
    (r"(?<![\w.>])time\s*\(\s*(nullptr|NULL|0|&\w+)?\s*\)", "a real clock"),
    (r"(\bstd|(?<!\w))::clock\s*\(\s*\)", "a real clock"),
    (r"\b(absl::Now|GetCurrentTimeNanos)\s*\(", "a real clock"),
    (r"\b(sleep_for|sleep_until|SleepFor)\b", "a sleep"),
    (r"(?<![\w.>])(::)?(usleep|nanosleep|clock_nanosleep|sleep|alarm)\s*\(", "a sleep"),
    (r"\b(timerfd_create|timer_create|setitimer)\s*\(", "a timer of the kernel"),
    (r"(\.|->)\s*(wait_for|wait_until|try_lock_for|try_lock_until)\s*\(", "a wait by the real clock"),
    (r"\b(rand|rand_r|srand|random|srandom|drand48|lrand48|mrand48)\s*\(", "global random"),
    (r"\b(random_device|mt19937(_64)?|default_random_engine|minstd_rand0?|ranlux\d+\w*|knuth_b)\b", "global random"),
    (r"\b(arc4random\w*|getrandom|getentropy|RAND_bytes)\b", "global random"),
    (r"\b(BitGen|InsecureBitGen)\b", "global random"),
    (r"\bexpires_at\b", "a timer set to an instant of the real clock"),
    (r"\b(system_timer|high_resolution_timer|deadline_timer)\b", "a timer by another clock"),
]
TIMERS = (r"\b(steady_timer|basic_waitable_timer|expires_after)\b", f"a timer outside {TIMER_FOLDER}")

SKIPPED = re.compile(
    r"//[^\n]*"  # comments
    r"|/\*.*?\*/"
    r'|R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'  # strings
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",  # characters, but not 1'000
    re.DOTALL,
)


def code_of(text):
    """The text with comments and strings blanked out, line by line as before."""
    return SKIPPED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def check(root):
    found = []
    for folder in FOLDERS:
        for path in sorted(p for p in (root / folder).rglob("*") if p.suffix in {".h", ".cc"}):
            name = path.relative_to(root).as_posix()
            if name == OWNER:
                continue
            has_timers = name.startswith(TIMER_FOLDER) or name in TIMER_FILES
            rules = FORBIDDEN + ([] if has_timers else [TIMERS])
            if name == OWNER_HEADER:
                rules = [rule for rule in rules if rule[1] != "global random"]
            for number, line in enumerate(code_of(path.read_text(encoding="utf-8")).split("\n"), 1):
                for pattern, what in rules:
                    match = re.search(pattern, line)
                    if match:
                        found.append(f"{name}:{number}: {what}: {match.group().strip()}")
    return found


def self_test():
    good = {
        "daemon/system.cc": "auto now = std::chrono::steady_clock::now(); std::random_device device;\n",
        "daemon/system.h": "std::mt19937_64 engine_;\n",
        "daemon/coordination_thread.cc": "timer_.expires_after(1s);\n",
        "proxy/http/loop.cc": "asio::steady_timer timer; timer.expires_after(1s);\n",
        "proxy/a.cc": (
            "// steady_clock::now() is forbidden here\n"
            '/* so is\n sleep_for */ log("time(nullptr) is {}", clock.now());\n'
            "Instant time(Window window); Clock& clock(); loop.clock(); window.time(); random.next(); int operand(1); strand(x);\n"
            "const auto limit = 1'000'000; char c = '\\''; next_random(); response_time(request);\n"
            'auto json = R"(rand())"; std::chrono::steady_clock::time_point when;\n'
        ),
    }
    bad = [
        "auto t = std::chrono::steady_clock::now();",
        "auto t = std::chrono::system_clock::now();",
        "auto t = Clock::clock_type::now();",
        "using C = std::chrono::high_resolution_clock;",
        "auto t = time(nullptr);",
        "auto t = std::time(0);",
        "auto t = ::time(&t);",
        "auto t = std::clock();",
        "gettimeofday(&tv, nullptr);",
        "::clock_gettime(CLOCK_MONOTONIC, &ts);",
        "std::this_thread::sleep_for(1s);",
        "sleep_until(t);",
        "usleep(5);",
        "::sleep(1);",
        "nanosleep(&ts, nullptr);",
        "changed_.wait_for(lock, 1s);",
        "int r = std::rand();",
        "srand(1);",
        "std::random_device device;",
        "std::mt19937_64 engine(1);",
        "std::default_random_engine engine;",
        "arc4random_uniform(5);",
        "getrandom(p, n, 0);",
        "asio::steady_timer timer(loop);",
        "timer.expires_after(1s);",
        'log("x"); timer.expires_at(when); // fine?',
    ]
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, text in good.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        assert check(root) == [], check(root)
        (root / "coordination").mkdir()
        for line in bad:
            (root / "coordination/bad.cc").write_text("\n" + line + "\n")
            caught = check(root)
            assert caught and all(c.startswith("coordination/bad.cc:2: ") for c in caught), (line, caught)
        (root / "coordination/bad.cc").unlink()
        (root / "proxy/http/loop.cc").write_text("timer.expires_at(when);\n")
        (root / "daemon/system.h").write_text("auto t = std::chrono::steady_clock::now();\n")
        assert len(check(root)) == 2, check(root)


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    found = check(pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[2]))
    print("\n".join(found) if found else f"time and random numbers come from {OWNER} alone")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
