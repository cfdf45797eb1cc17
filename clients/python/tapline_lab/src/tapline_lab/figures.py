"""Figures of results as SVG text, using only the standard library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ._errors import TaplineError

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 620, 320, 56, 150, 36, 44
COLOURS = ("#0b6e99", "#c4542b", "#3f7d3f", "#7b4fa3", "#9a7d0a", "#555555", "#b03a6b", "#1f8a8a")

GREY = "#777777"


@dataclass(frozen=True)
class Figure:
    """An SVG figure, which Jupyter displays; `svg` is its source."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass(frozen=True)
class Line:
    name: str
    """In the legend; empty to omit it."""
    points: Sequence[tuple[float, float]]
    dashed: bool = False
    colour: str | None = None


def figure(operation: str, result: Mapping[str, Any]) -> Figure:
    """The main figure of a result.

    compare: the target token's probability by strength, one line per prompt, controls dashed. probe: accuracy on
    held-out examples by layer, compared with shuffled labels and the majority label. sae: loss by step. inspect: the
    lens's top token at every token and layer, darker if more probable. patch_sweep: recovery (or change) at every layer
    and token, blue above 0 and orange below; for heads by layer and head, at the strongest token.
    """
    draw = {"compare": _compare, "probe": _probe, "sae": _sae, "inspect": _inspect, "patch_sweep": _patched}.get(operation)
    if draw is None:
        raise TaplineError(f"Results of {operation} have no figure.")
    return Figure(draw(result))


def _compare(result: Mapping[str, Any]) -> str:
    prompts: dict[str, list[Mapping[str, Any]]] = {}
    for trial in result["trials"]:
        prompts.setdefault(trial["prompt"], []).append(trial)
    lines: list[Line] = []
    random: list[Line] = []
    for prompt, trials in prompts.items():
        ordered = sorted(trials, key=lambda trial: float(trial["strength"]))
        name = prompt if len(prompt) <= 20 else f"…{prompt[-19:]}"
        lines.append(Line(name, [(each["strength"], each["probability"]) for each in ordered]))
        controls = [(each["strength"], each["control"]["probability"]) for each in ordered if "control" in each]
        if controls:
            random.append(Line("" if random else "random vector", controls, dashed=True, colour=GREY))
    targets = {repr(trial["target_token"])[1:-1].strip() for trial in result["trials"]}
    of = f" of {targets.pop()}" if len(targets) == 1 else ""
    return chart([*lines, *random], f"{result['intervention']}: probability{of} by strength", "strength", (0, 1))


def _probe(result: Mapping[str, Any]) -> str:
    def by_layer(name: str) -> list[tuple[float, float]]:
        return [(report["layer"], report[name]) for report in result["reports"]]

    rows = [(report["layer"], report["by_row"]["accuracy"]) for report in result["reports"] if "by_row" in report]
    return chart(
        [
            Line("held-out examples", by_layer("accuracy")),
            *([Line("single tokens", rows)] if rows else []),
            Line("shuffled labels", by_layer("shuffled_label_accuracy"), dashed=True),
            Line("majority label", by_layer("majority_accuracy"), dashed=True),
        ],
        "probe: accuracy by layer",
        "layer",
        (0, 1),
    )


def _sae(result: Mapping[str, Any]) -> str:
    lines = [
        Line(f"layer {report['layer']}", [(each["step"], each["loss"]) for each in report["losses"]])
        for report in result["reports"]
    ]
    return chart(lines, "sae: loss by step", "step")


def _inspect(result: Mapping[str, Any]) -> str:
    layers = [layer for layer in result["layers"] if layer.get("predictions")]
    if not layers:
        return _norms(result)
    first = max(0, len(result["tokens"]) - 12)
    tokens = result["tokens"][first:]
    wide, high = 74, 22
    parts = []
    for row, layer in enumerate(reversed(layers)):
        y = TOP + row * high
        parts.append(_text(LEFT - 6, y + 15, f"block {layer['layer']}", anchor="end"))
        for column, candidates in enumerate(layer["predictions"][first:]):
            best, x = candidates[0], LEFT + column * wide
            shade = best["probability"]
            ink = "#ffffff" if shade > 0.5 else "#222222"
            parts.append(
                f'<rect x="{x}" y="{y}" width="{wide - 2}" height="{high - 2}" fill="#0b6e99" '
                f'fill-opacity="{shade:.3f}"><title>{_safe(best["token"])} {shade:.3f}</title></rect>'
            )
            parts.append(_text(x + wide / 2 - 1, y + 15, _short(best["token"]), anchor="middle", ink=ink))
    below = TOP + len(layers) * high + 16
    for column, token in enumerate(tokens):
        parts.append(_text(LEFT + column * wide + wide / 2 - 1, below, _short(token), anchor="middle"))
    parts.append(_text(LEFT, TOP - 14, "logit lens: most probable next token at each block", size=13))
    return _svg(LEFT + wide * len(tokens) + 8, below + 12, parts)


def _patched(result: Mapping[str, Any]) -> str:
    sites = result["sites"]
    shares = any(site["recovery"] is not None for site in sites)
    what = "recovery" if shares else "change"

    def size(site: Mapping[str, Any]) -> float:
        return float(site[what] or 0)

    pair = result["pairs"][0]
    spans = "spans" in pair["clean"]
    length = len(pair["clean"]["tokens"])
    positions: list[int] = sorted(result["positions"], key=lambda place: place if spans else int(place) % length)
    reach = max([1.0 if shares else 1e-9, *(abs(size(site)) for site in sites)])

    def token(side: str, position: int) -> str:
        prompt = pair[side]
        return str(prompt["spans"][position]["text"] if spans else prompt["tokens"][position])

    parts: list[str] = []
    top, right = TOP, LEFT
    for point in result.get("points", ["block_out"]):
        own = [site for site in sites if site.get("point", "block_out") == point]
        title = "patch_sweep: " + what + ("" if point == "block_out" else f", {point}")
        columns: list[int] = positions
        names = [[token(side, position) for position in positions] for side in ("clean", "corrupted")]
        place = "position"
        if point == "head_out":
            place, columns = "head", list(result["heads"])
            names = [[f"head {head}" for head in columns]]
            title += ", each head at its strongest token"
            own = sorted(own, key=lambda site: abs(size(site)))  # the strongest comes last and wins
        value = {(site["layer"], site[place]): size(site) for site in own}
        top, wide = _map(parts, top, title, sorted(result["layers"], reverse=True), columns, value, reach, names)
        right = max(right, wide)
    return _svg(right + 8, top - TOP, parts)


def _map(
    parts: list[str],
    top: int,
    title: str,
    layers: Sequence[int],
    columns: Sequence[int],
    value: Mapping[tuple[int, int], float],
    reach: float,
    names: Sequence[Sequence[str]],
) -> tuple[int, int]:
    """Draws a heatmap of blocks by columns, with labels below. Returns the next map's top and this map's width."""
    wide, high = 60, 22
    parts.append(_text(LEFT, top - 14, title, size=13))
    for row, layer in enumerate(layers):
        y = top + row * high
        parts.append(_text(LEFT - 6, y + 15, f"block {layer}", anchor="end"))
        for column, name in enumerate(columns):
            here, x = value[layer, name], LEFT + column * wide
            strength = abs(here) / reach
            ink = "#ffffff" if strength > 0.5 else "#222222"
            parts.append(
                f'<rect x="{x}" y="{y}" width="{wide - 2}" height="{high - 2}" fill="{COLOURS[here < 0]}" '
                f'fill-opacity="{strength:.3f}"/>'
            )
            parts.append(_text(x + wide / 2 - 1, y + 15, f"{here:.2f}", anchor="middle", ink=ink))
    below = top + len(layers) * high + 16
    for under, line in enumerate(names):
        for column, text in enumerate(line):
            parts.append(
                _text(LEFT + column * wide + wide / 2 - 1, below + 16 * under, _short(text, 8), anchor="middle")
            )
    return below + 28 + TOP, LEFT + wide * len(columns)


def _norms(result: Mapping[str, Any]) -> str:
    lines = [Line(f"block {layer['layer']}", list(enumerate(layer["norms"]))) for layer in result["layers"]]
    return chart(lines, "norm of block outputs by token", "token")


def chart(
    lines: Sequence[Line], title: str, across: str, span: tuple[float, float] | None = None
) -> str:
    """A line chart as SVG; `span` is the vertical range; default: that of the points and zero."""
    points = [point for line in lines for point in line.points]
    if not points:
        raise TaplineError("There is no data to draw.")
    x_low, x_high = _range(x for x, _ in points)
    y_low, y_high = span or _range([0.0, *(y for _, y in points)])

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (x - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - (y - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM),
        )

    parts = [_text(LEFT, TOP - 14, title, size=13)]
    for share in (0, 0.25, 0.5, 0.75, 1):
        value = y_low + share * (y_high - y_low)
        _, y = place(x_low, value)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{value:.3g}", anchor="end"))
    ticks = sorted({x for x, _ in points})
    for x_value in ticks[:: max(1, len(ticks) // 8)]:
        x, _ = place(x_value, y_low)
        parts.append(_text(x, HEIGHT - BOTTOM + 16, f"{x_value:.4g}", anchor="middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, across, anchor="middle"))
    for index, line in enumerate(lines):
        colour = line.colour or COLOURS[index % len(COLOURS)]
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        placed = [place(x, y) for x, y in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in placed]
        y = TOP + 12 + 18 * index
        if line.name and y < HEIGHT - BOTTOM:
            x = WIDTH - RIGHT + 8
            key = f'x1="{x}" x2="{x + 16}" y1="{y - 4}" y2="{y - 4}"'
            parts.append(f'<line {key} stroke="{colour}" stroke-width="2"{dash}/>')
            parts.append(_text(x + 20, y, _short(line.name, 20)))
    return _svg(WIDTH, HEIGHT, parts)


def _range(values: Iterable[float]) -> tuple[float, float]:
    known = list(values)
    low, high = min(known), max(known)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _svg(width: float, height: float, parts: Iterable[str]) -> str:
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">'
        f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>{"".join(parts)}</svg>'
    )


def _text(
    x: float, y: float, text: str, anchor: str = "start", size: int = 11, ink: str = "#222222"
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{ink}"'
    return f"<text {place}>{_safe(text)}</text>"


def _short(text: str, most: int = 10) -> str:
    plain = text.strip() or repr(text)[1:-1]
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


def _safe(text: str) -> str:
    """Escapes text for XML; control characters and unpaired surrogates become U+FFFD."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))
