"""CPU time per request as an SVG: for each case a dot and its range for every server beside the base."""

from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT = 900, 300, 60
ROW, HEAD, TOP, BOTTOM = 20, 30, 50, 40
COLOURS = {"weird": "#1f5fa8", "nginx": "#3a8f3a", "haproxy": "#b5651d"}
LARGEST = 2.0  # what is more is drawn at the edge, with its number


def ratios(cases):
    rows = sum(1 + len(case["ratios"]) for case in cases.values())
    height = TOP + BOTTOM + HEAD * len(cases) + ROW * (rows - len(cases))
    inner = WIDTH - LEFT - RIGHT

    def x(ratio):
        return LEFT + min(ratio, LARGEST) / LARGEST * inner

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
             text(LEFT, 20, "CPU time per request, as a multiple of the base: median, and range over the rounds", bold=True)]
    for tick in range(0, int(LARGEST * 4) + 1):
        at, grey = x(tick / 4), "#666" if tick == 4 else "#ddd"
        parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 10}" y2="{height - BOTTOM}" stroke="{grey}"/>')
        parts.append(text(at, height - BOTTOM + 18, f"{tick / 4:g}", anchor="middle"))
    y = TOP
    for case in cases.values():
        parts.append(text(10, y + 12, f"{case['title']} (base: {case['base']})", bold=True))
        y += HEAD
        for name, ratio in case["ratios"].items():
            parts += row(name, ratio["cpu"], goal_of(case, name), x, y)
            y += ROW
    parts.append(text(LEFT, height - 6, "a red line is the most that the goal allows", colour="#a00"))
    return "\n".join([*parts, "</svg>", ""])


def goal_of(case, name):
    found = [goal["at_most"] for goal in case["goals"] if goal["what"] == f"CPU-s per 100,000 of {name}"]
    return found[0] if found else None


def row(name, ratio, goal, x, y):
    colour = COLOURS.get(name.split(",")[0], COLOURS["weird"])
    low, middle, high = x(ratio["min"]), x(ratio["median"]), x(ratio["max"])
    yield text(LEFT - 10, y + 4, name, anchor="end")
    yield f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"/>'
    yield f'<circle cx="{middle:.1f}" cy="{y}" r="4.5" fill="{colour}"/>'
    yield text(high + 8, y + 4, f"{ratio['median']:.2f}")
    if goal:
        yield f'<line x1="{x(goal):.1f}" x2="{x(goal):.1f}" y1="{y - 8}" y2="{y + 8}" stroke="#a00" stroke-width="2"/>'


def text(x, y, words, anchor="start", bold=False, colour="#222"):
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{weight}>{escape(words)}</text>'
