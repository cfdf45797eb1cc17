/**
 * Large maps of cells, on a canvas that only draws visible cells: 256 tokens and 24 layers cost as much as 20 and 24.
 * Smaller maps and saved ones are the report's SVG.
 */
import { axesOf, rowsOf, type ShadeAxis } from "../../findings/axes.js";
import type { Chart, Figure } from "../../findings/figure.js";
import { rampLegend } from "../../report/page/legend.js";
import { cutText, font } from "../../report/page/text.js";
import { readableOn } from "../../report/page/theme.js";
import { colors, namesWidth } from "../../report/page/tokens.js";

export type TokenFigure = Figure & { chart: Extract<Chart, { kind: "tokens" }> };

/** Pixels: of cells with and without text, and of the labels to their left and below. */
const sizes = { worded: 62, wordedHeight: 28, bare: 22, axis: 44, below: 26, tallBelow: 96, strip: 3 };
const steps = 256;

interface Listener {
  /** A cell was reached by pointer or arrow keys: its row of the figure; -1 for none. */
  at(row: number, byKeys: boolean): void;
  pick(row: number): void;
}

export interface CellMap {
  legend: Element;
  draw(theme: Theme): void;
  /** Outlines the cell of a row of the figure until another one is marked. */
  mark(row: number | undefined): void;
  close(): void;
}

/** The figure's cells by place. */
interface Cells {
  columns: string[];
  /** Names of the rows, from top to bottom. */
  down: string[];
  values: Float64Array;
  /** The figure's row at each place; -1 without one. */
  rows: Int32Array;
  labels: (string | undefined)[];
}

/**
 * Puts a map into an empty element.
 * @param names ARIA attributes of the focusable element
 */
export function openMap(
  box: HTMLElement,
  figure: TokenFigure,
  first: Theme,
  names: Record<string, string>,
  listener: Listener,
): CellMap {
  const { chart } = figure;
  const axis = axesOf(chart, rowsOf(figure)).shades[chart.value] as ShadeAxis;
  const cells = cellsOf(figure);
  const { columns, down } = cells;
  const worded = chart.down === undefined;
  const [width, height] = worded ? [sizes.worded, sizes.wordedHeight] : [sizes.bare, sizes.bare];
  const left = worded ? sizes.axis : namesWidth(down, box.clientWidth);
  const below = worded ? sizes.below : sizes.tallBelow;
  const whole = { width: left + columns.length * width, height: down.length * height + below };

  const scroller = element("div", "map");
  const room = element("div", "map-room");
  const canvas = element("canvas", "map-cells") as HTMLCanvasElement;
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  const tip = element("div", "map-tip");
  const strip = element("canvas", "map-strip") as HTMLCanvasElement;
  for (const part of [canvas, strip, tip]) part.setAttribute("aria-hidden", "true");
  room.style.width = `${whole.width}px`;
  room.style.height = `${whole.height}px`;
  tip.hidden = true;
  room.append(canvas);
  scroller.append(room);
  // One tab stop: the scrolling element has the focus.
  scroller.tabIndex = 0;
  scroller.setAttribute("role", "group");
  for (const [name, value] of Object.entries(names)) scroller.setAttribute(name, value);
  box.append(strip, scroller, tip);
  const legend = element("div", "legend");

  let theme = first;
  let shade: Shading;
  let cut = new Map<string, string>();
  let chosen = -1;
  let marked = -1;
  let frame = 0;
  const ending = new AbortController();
  const { signal } = ending;

  const window = () => ({
    width: Math.min(scroller.clientWidth, whole.width),
    height: Math.min(scroller.clientHeight, whole.height),
  });
  const fitted = (text: string, space: number): string => {
    const key = `${space} ${text}`;
    if (!cut.has(key)) cut.set(key, cutText(text, 12, space));
    return cut.get(key) as string;
  };
  const placed = (at: number) => [Math.floor(at / columns.length), at % columns.length] as const;
  const rowAt = (at: number) => (at < 0 ? -1 : (cells.rows[at] as number));
  /** Draws inside a rectangle. */
  const clipped = (x: number, y: number, wide: number, high: number, paintInside: () => void) => {
    context.save();
    context.beginPath();
    context.rect(x, y, wide, high);
    context.clip();
    paintInside();
    context.restore();
  };

  function paint(): void {
    frame = 0;
    const seen = window();
    const ratio = devicePixelRatio || 1;
    const [pixels, lines] = [Math.round(seen.width * ratio), Math.round(seen.height * ratio)];
    if (canvas.width !== pixels || canvas.height !== lines) {
      canvas.width = pixels;
      canvas.height = lines;
      canvas.style.width = `${seen.width}px`;
      canvas.style.height = `${seen.height}px`;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, seen.width, seen.height);
    context.font = `12px ${font}`;
    context.textBaseline = "middle";
    const { scrollLeft, scrollTop } = scroller;
    const firstColumn = Math.max(0, Math.floor(scrollLeft / width));
    const lastColumn = Math.min(columns.length, Math.ceil((scrollLeft + seen.width - left) / width));
    const firstRow = Math.max(0, Math.floor(scrollTop / height));
    const lastRow = Math.min(down.length, Math.ceil((scrollTop + seen.height - below) / height));
    context.textAlign = "center";
    for (let row = firstRow; row < lastRow; row += 1) {
      for (let column = firstColumn; column < lastColumn; column += 1) {
        const at = row * columns.length + column;
        if (rowAt(at) < 0) continue;
        const step = shade.step(cells.values[at] as number);
        const [x, y] = [left + column * width - scrollLeft, row * height - scrollTop];
        context.fillStyle = step < 0 ? theme.card : (shade.fills[step] as string);
        context.fillRect(x + 0.5, y + 0.5, width - 1, height - 1);
        const label = worded ? cells.labels[at] : undefined;
        if (label === undefined || label === "") continue;
        context.fillStyle = step < 0 ? theme.ink : (shade.inks[step] as string);
        context.fillText(fitted(label, width - 6), x + width / 2, y + height / 2);
      }
    }
    for (const at of new Set([marked, chosen])) {
      if (at < 0) continue;
      const [row, column] = placed(at);
      const [x, y] = [left + column * width - scrollLeft, row * height - scrollTop];
      context.strokeStyle = theme.ink;
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, width - 2, height - 2);
    }
    // The labels cover the cells that are scrolled out of view.
    context.fillStyle = theme.card;
    context.fillRect(0, 0, left, seen.height);
    context.fillRect(0, seen.height - below, seen.width, below);
    context.textAlign = "right";
    context.fillStyle = worded ? theme.soft : theme.ink;
    clipped(0, 0, left, seen.height - below, () => {
      for (let row = firstRow; row < lastRow; row += 1) {
        context.fillText(fitted(down[row] as string, left - 6), left - 6, (row + 0.5) * height - scrollTop);
      }
    });
    clipped(left, seen.height - below, seen.width - left, below, () => {
      context.fillStyle = theme.ink;
      context.textAlign = worded ? "center" : "right";
      for (let column = firstColumn; column < lastColumn; column += 1) {
        const x = left + (column + 0.5) * width - scrollLeft;
        const y = seen.height - below + (worded ? below / 2 : 6);
        context.setTransform(ratio, 0, 0, ratio, x * ratio, y * ratio);
        if (!worded) context.rotate(-Math.PI / 2);
        context.fillText(fitted(columns[column] as string, worded ? width - 4 : below - 12), 0, 0);
      }
    });
    paintStrip(seen.width);
  }

  /** A miniature of all columns, with a frame around the visible ones. */
  function paintStrip(seen: number): void {
    strip.hidden = whole.width <= box.clientWidth;
    if (strip.hidden) return;
    const context = strip.getContext("2d") as CanvasRenderingContext2D;
    if (strip.width !== columns.length) strip.width = columns.length;
    if (strip.height !== down.length) strip.height = down.length;
    const image = context.createImageData(columns.length, down.length);
    for (let at = 0; at < cells.values.length; at += 1) {
      const step = rowAt(at) < 0 ? -1 : shade.step(cells.values[at] as number);
      if (step >= 0) image.data.set(shade.bytes.subarray(4 * step, 4 * step + 4), 4 * at);
    }
    context.putImageData(image, 0, 0);
    const share = columns.length / (whole.width - left);
    context.strokeStyle = theme.ink;
    context.lineWidth = 1;
    const [from, across] = [scroller.scrollLeft * share, (seen - left) * share];
    context.strokeRect(Math.round(from) + 0.5, 0.5, Math.max(1, Math.round(across) - 1), down.length - 1);
  }

  const again = () => {
    if (frame === 0) frame = requestAnimationFrame(paint);
  };
  const placeOf = (event: PointerEvent | MouseEvent): number => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const seen = window();
    if (x < left || y > seen.height - below) return -1;
    const column = Math.floor((x - left + scroller.scrollLeft) / width);
    const row = Math.floor((y + scroller.scrollTop) / height);
    const at = row * columns.length + column;
    return column < columns.length && row < down.length && rowAt(at) >= 0 ? at : -1;
  };
  function choose(at: number, byKeys: boolean, pointer?: { x: number; y: number }): void {
    if (at !== chosen) {
      chosen = at;
      again();
      listener.at(rowAt(at), byKeys);
      tip.textContent = figure.details[rowAt(at)] ?? "";
      tip.hidden = at < 0;
    }
    if (at < 0) return;
    const around = box.getBoundingClientRect();
    const cell = canvas.getBoundingClientRect();
    const [row, column] = placed(at);
    const x = pointer?.x ?? cell.left + left + (column + 1) * width - scroller.scrollLeft;
    const y = pointer?.y ?? cell.top + (row + 1) * height - scroller.scrollTop;
    const across = Math.max(0, Math.min(x - around.left + 14, around.width - tip.offsetWidth - 4));
    tip.style.transform = `translate(${across}px, ${Math.max(0, y - around.top + 14)}px)`;
  }
  const show = (at: number) => {
    const seen = window();
    const [row, column] = placed(at);
    const [x, y] = [column * width, row * height];
    scroller.scrollTo({
      left: clampTo(scroller.scrollLeft, x + width - (seen.width - left), x),
      top: clampTo(scroller.scrollTop, y + height - (seen.height - below), y),
    });
  };
  const move = (event: KeyboardEvent) => {
    if (event.key === "Enter" && chosen >= 0) listener.pick(rowAt(chosen));
    if (event.key === "Escape") choose(-1, true);
    const [row, column] = chosen < 0 ? [0, -1] : placed(chosen);
    const next = {
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      ArrowDown: [row + 1, Math.max(0, column)],
      ArrowUp: [row - 1, Math.max(0, column)],
      Home: [row, 0],
      End: [row, columns.length - 1],
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const [to, across] = next as [number, number];
    const at = clampTo(to, 0, down.length - 1) * columns.length + clampTo(across, 0, columns.length - 1);
    if (rowAt(at) < 0) return;
    show(at);
    choose(at, true);
  };
  const hover = (event: PointerEvent) =>
    choose(placeOf(event), false, { x: event.clientX, y: event.clientY });
  const click = (event: MouseEvent) => {
    const at = placeOf(event);
    if (at >= 0) listener.pick(rowAt(at));
  };
  scroller.addEventListener("scroll", again, { signal, passive: true });
  canvas.addEventListener("pointermove", hover, { signal });
  canvas.addEventListener("pointerleave", () => choose(-1, false), { signal });
  canvas.addEventListener("click", click, { signal });
  scroller.addEventListener("keydown", move, { signal });
  scroller.addEventListener("blur", () => choose(-1, true), { signal });
  const scrub = (event: PointerEvent) => {
    if (event.buttons === 0) return;
    const { left: from, width: across } = strip.getBoundingClientRect();
    const middle = ((event.clientX - from) / across) * (whole.width - left);
    scroller.scrollLeft = middle - (scroller.clientWidth - left) / 2;
  };
  strip.addEventListener("pointerdown", scrub, { signal });
  strip.addEventListener("pointermove", scrub, { signal });
  const sizesChanged = new ResizeObserver(again);
  sizesChanged.observe(scroller);

  const map: CellMap = {
    legend,
    draw(now) {
      theme = now;
      cut = new Map();
      const color = colors(axis, chart.scale, theme);
      shade = shading(color);
      legend.replaceChildren(rampLegend({ ...color, label: chart.legend }, axis.legend, theme));
      paint();
    },
    mark(row) {
      marked = row === undefined ? -1 : cells.rows.indexOf(row);
      if (marked >= 0) show(marked);
      again();
    },
    close() {
      ending.abort();
      sizesChanged.disconnect();
      cancelAnimationFrame(frame);
    },
  };
  map.draw(first);
  return map;
}

function cellsOf({ chart, columns: named, rows }: TokenFigure): Cells {
  const column = (name: string) => named.findIndex((one) => one.name === name);
  const [layer, position, value, label] = ["layer", "position", chart.value, chart.label].map(column) as [
    number,
    number,
    number,
    number,
  ];
  const columns = chart.tokens;
  const layers = [...new Set(rows.map((row) => Number(row[layer])))].sort((a, b) => b - a);
  const down = chart.down ?? layers.map((one) => String(one));
  const lines = new Map(
    chart.down === undefined ? layers.map((one, at) => [one, at]) : down.map((_, at) => [at, at]),
  );
  const size = down.length * columns.length;
  const cells: Cells = {
    columns,
    down,
    values: new Float64Array(size).fill(Number.NaN),
    rows: new Int32Array(size).fill(-1),
    labels: new Array(size),
  };
  for (const [row, found] of rows.entries()) {
    const at = (lines.get(Number(found[layer])) ?? 0) * columns.length + Number(found[position]);
    cells.rows[at] = row;
    if (typeof found[value] === "number") cells.values[at] = found[value];
    cells.labels[at] = found[label] === null ? undefined : String(found[label]);
  }
  return cells;
}

interface Shading {
  fills: string[];
  /** The readable text colour on each of them. */
  inks: string[];
  /** Red, green, blue and alpha of each. */
  bytes: Uint8ClampedArray;
  /** The step of a value; -1 for none. */
  step(value: number): number;
}

/** A scale's colours in steps, so that cells need no interpolation. */
function shading({ type, domain, interpolate }: ReturnType<typeof colors>): Shading {
  const share = (value: number) => (type === "log" ? Math.log(value) : value);
  const [low, high] = domain.map(share) as [number, number];
  const fills = Array.from({ length: steps }, (_, step) => interpolate(step / (steps - 1)));
  const bytes = new Uint8ClampedArray(4 * steps);
  for (const [step, fill] of fills.entries()) {
    const { r, g, b } = d3.rgb(fill);
    bytes.set([r, g, b, 255], 4 * step);
  }
  return {
    fills,
    inks: fills.map(readableOn),
    bytes,
    step(value) {
      if (Number.isNaN(value)) return -1;
      return Math.round(clampTo((share(value) - low) / (high - low), 0, 1) * (steps - 1));
    },
  };
}

function clampTo(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}

function element(name: string, className: string): HTMLElement {
  const made = document.createElement(name);
  made.className = className;
  return made;
}
