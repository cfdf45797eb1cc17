import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Figure, Shade } from "../../../findings/figure.js";
import type { CellMap, TokenFigure } from "../map.js";
import { select, usePlace } from "../router.js";
import { listen } from "../store.js";
import { Choice } from "./fields.js";
import { AtSpot, type Spot, spotOf } from "./figure-at.js";
import { type SaveKind, SaveTools } from "./picture.js";
import { DataTable } from "./table.js";

interface FigureProps {
  figure: Figure;
  /** Prefix of saved files. */
  name: string;
  /** Called with the row that was clicked, or chosen with Enter. */
  onPick?: (row: number) => void;
  /** What a click does, for screen readers. */
  picks?: string;
  /** The selected row, whose cell is outlined, and what is shown next to it. */
  selected?: number | undefined;
  detail?: ComponentChildren;
}

type Pictures = typeof import("../pictures.js");
/** Once a figure was drawn. */
let loaded: Pictures | undefined;

/** Maps with more cells are drawn on a canvas, which only draws visible cells. */
const mostDrawnCells = 2000;

/** One of a result's figures, drawn by the report's functions. */
export function FigureView({ figure: whole, name, onPick, picks, selected, detail }: FigureProps) {
  const { query } = usePlace();
  const shades = (whole.chart.kind === "tokens" ? whole.chart.shades : undefined) ?? [];
  const by = shades.find(({ id }) => id === query.get("by")) ?? shades[0];
  const figure = useMemo(() => shadedBy(whole, by), [whole, by]);
  const large =
    figure.chart.kind === "tokens" && figure.chart.panel === undefined && figure.rows.length > mostDrawnCells;
  const chart = useRef<HTMLDivElement>(null);
  const status = useRef<HTMLParagraphElement>(null);
  const pick = useRef(onPick);
  pick.current = onPick;
  const [failed, setFailed] = useState<string>();
  const place = useRef<HTMLDivElement>(null);
  const panels = useRef<Panel[]>([]);
  const [spot, setSpot] = useState<Spot>();
  const map = useRef<CellMap | undefined>(undefined);
  const row = useRef(selected);
  row.current = selected;
  /** Finds the selected cell in what is drawn now. */
  const locate = () => {
    map.current?.mark(row.current);
    const box = place.current;
    const found =
      row.current === undefined || box === null ? undefined : spotOf(panels.current, row.current, box);
    setSpot(found);
  };
  useLayoutEffect(locate, [selected]);
  // The same figure of another job may be on the page.
  const id = useId();
  const [title, keys] = [`${id}-title`, `${id}-keys`];
  const names = { "aria-labelledby": title, "aria-describedby": keys };
  // A layout effect: a later one would leave the previous figure under the new caption for a moment.
  useLayoutEffect(() => {
    const container = chart.current as HTMLDivElement;
    const ending = new AbortController();
    const { signal } = ending;
    const open = (pictures: Pictures) => {
      if (signal.aborted) return;
      const say = status.current as HTMLElement;
      const picked = (row: number) => pick.current?.(row);
      const drawn = (now: Panel[]) => {
        panels.current = now;
        locate();
      };
      const canvas = { container, say, figure, names, picked, signal, pictures, drawn };
      const show = large ? asMap({ ...canvas, map }) : asDrawing(canvas);
      // A tab stop once it is drawn; a map has its own.
      if (large) container.removeAttribute("tabindex");
      else container.tabIndex = 0;
      if (large) locate();
      const dark = matchMedia("(prefers-color-scheme: dark)");
      dark.addEventListener("change", show, { signal });
      signal.addEventListener("abort", listen("theme", show));
    };
    // Keys that follow at once are for the figure, too.
    if (loaded !== undefined) open(loaded);
    else {
      import("../pictures.js").then(
        (pictures) => {
          loaded = pictures;
          open(pictures);
        },
        () => setFailed("The figure could not be loaded; the table has its data."),
      );
    }
    return () => {
      ending.abort();
      panels.current = [];
      map.current = undefined;
      container.replaceChildren();
    };
  }, [figure]);
  const save = async (kind: SaveKind) => {
    const { draw, place, save, theme } = await import("../pictures.js");
    const shown = chart.current as HTMLElement;
    const file = `${name}-${figure.id}`;
    if (!large || kind === "csv") return save(kind, figure, shown, theme(), file);
    // Saving draws the whole map outside the visible page.
    const aside = document.createElement("div");
    aside.className = "chart aside";
    aside.style.width = `${shown.clientWidth}px`;
    document.body.append(aside);
    place(aside, draw(figure, { width: shown.clientWidth, theme: theme() }));
    await save(kind, figure, aside, theme(), file).finally(() => aside.remove());
  };
  return (
    <figure class="card picture" aria-labelledby={title}>
      <figcaption>
        <h2 id={title}>{figure.title}</h2>
        <p class="soft">{figure.description}</p>
      </figcaption>
      <SaveTools title={figure.title} save={save} />
      {shades.length > 1 && (
        <p class="row">
          <Choice
            label="Colour by"
            value={by?.id}
            options={shades.map(({ id, name }) => [id, name])}
            onChange={(id) => select({ by: id === shades[0]?.id ? undefined : id })}
          />
        </p>
      )}
      <div class="chart-place" ref={place}>
        <div
          class={large ? "chart large" : "chart"}
          ref={chart}
          {...(!large && { ...names, role: "group" })}
        />
        {spot !== undefined && place.current !== null && (
          <AtSpot spot={spot} box={place.current}>
            {detail}
          </AtSpot>
        )}
      </div>
      {large && selected !== undefined && detail}
      <p class="visually-hidden" id={keys}>
        {large ? "Arrow keys move between cells" : "Left and right arrow keys step through the values"}
        {picks === undefined ? "" : `, Enter: ${picks}`}. The table has all values.
      </p>
      <p class="detail" role="status" ref={status} />
      {failed !== undefined && <p role="alert">{failed}</p>}
      {(figure.notes ?? []).map((note) => (
        <p class="soft" key={note}>
          {note}
        </p>
      ))}
      <LazyTable figure={figure} />
    </figure>
  );
}

/** The same cells, coloured by another quantity. */
function shadedBy(figure: Figure, shade: (Shade & { id: string; name: string }) | undefined): Figure {
  if (shade === undefined || figure.chart.kind !== "tokens") return figure;
  const { value, label, legend, scale } = shade;
  return { ...figure, chart: { ...figure.chart, value, label, legend, scale } };
}

interface Canvas {
  container: HTMLElement;
  /** A live region for screen readers. */
  say: HTMLElement;
  figure: Figure;
  /** ARIA attributes of the focusable element. */
  names: Record<string, string>;
  picked: (row: number) => void;
  signal: AbortSignal;
  pictures: Pictures;
  /** Called with the pictures each time they are drawn. */
  drawn: (panels: Panel[]) => void;
}

/** @returns a function that redraws it in the current theme */
function asMap({
  container,
  say,
  figure,
  names,
  picked,
  signal,
  pictures,
  map: opened,
}: Canvas & { map: { current: CellMap | undefined } }): () => void {
  const { openMap, theme } = pictures;
  let pending: ReturnType<typeof setTimeout> | undefined;
  const at = (row: number, byKeys: boolean) => {
    clearTimeout(pending);
    if (!byKeys) return;
    // After several quick steps, only the last cell is announced.
    pending = setTimeout(() => {
      say.textContent = (figure.details[row] ?? "").replaceAll("\n", ", ");
    }, 150);
  };
  const map = openMap(container, figure as TokenFigure, theme(), names, { at, pick: picked });
  opened.current = map;
  container.prepend(map.legend);
  signal.addEventListener("abort", () => {
    clearTimeout(pending);
    map.close();
  });
  return () => map.draw(theme());
}

/** @returns a function that redraws it in the current theme */
function asDrawing({ container, say, figure, picked, signal, pictures, drawn: told }: Canvas): () => void {
  const { draw, place, stepWithKeys, theme } = pictures;
  let [panels, width]: [Panel[], number] = [[], 0];
  const show = () => {
    const drawn = draw(figure, { width: Math.max(240, container.clientWidth), theme: theme() });
    panels = drawn.panels;
    place(container, drawn);
    told(panels);
  };
  const clicked = (event: MouseEvent) => {
    const svg = (event.target as Element).closest("svg");
    const panel = panels.find((one) => one.svg === svg);
    if (panel === undefined) return;
    const box = panel.svg.getBoundingClientRect();
    const scale = panel.svg.viewBox.baseVal.width / box.width;
    const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    const far = ({ x: px, y: py }: Point) => Math.hypot(px - x, py - y);
    const nearest = panel.points.reduce((best, point) => (far(point) < far(best) ? point : best));
    if (far(nearest) < 80) picked(nearest.row);
  };
  container.addEventListener("click", clicked, { signal });
  stepWithKeys(container, say, () => panels, figure.details, picked, signal);
  const fit = () => {
    if (container.clientWidth === width) return;
    width = container.clientWidth;
    show();
  };
  // The observer's first call comes with the next frame, and keys may come before it.
  fit();
  const sizes = new ResizeObserver(fit);
  sizes.observe(container);
  signal.addEventListener("abort", () => sizes.disconnect());
  return show;
}

/** The data as a table, rendered on first opening. */
function LazyTable({ figure: { table, title } }: { figure: Figure }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Data of “{title}” as a table</summary>
      {open && <DataTable head={table.head} rows={table.rows} label={title} />}
    </details>
  );
}
