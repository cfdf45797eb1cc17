import { useEffect, useRef, useState } from "preact/hooks";
import type { Figure } from "../../../report/figure.js";
import { listen } from "../store.js";

interface FigureProps {
  figure: Figure;
  /** Begins the names of files that are saved. */
  name: string;
  /** Hears which row was clicked, or chosen with Enter. */
  onPick?: (row: number) => void;
  /** What a click does, in words. */
  picks?: string;
}

/** One of a result's figures, drawn by the report's own functions. */
export function FigureView({ figure, name, onPick, picks }: FigureProps) {
  const chart = useRef<HTMLDivElement>(null);
  const status = useRef<HTMLParagraphElement>(null);
  const pick = useRef(onPick);
  pick.current = onPick;
  const [failed, setFailed] = useState<string>();
  useEffect(() => {
    const container = chart.current as HTMLDivElement;
    let [ended, width] = [false, 0];
    let panels: Panel[] = [];
    const endings: (() => void)[] = [];
    const clicked = (event: MouseEvent) => {
      const svg = (event.target as Element).closest("svg");
      const panel = panels.find((one) => one.svg === svg);
      if (panel === undefined || pick.current === undefined) return;
      const box = panel.svg.getBoundingClientRect();
      const scale = panel.svg.viewBox.baseVal.width / box.width;
      const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
      const far = ({ x: px, y: py }: Point) => Math.hypot(px - x, py - y);
      const nearest = panel.points.reduce((best, point) => (far(point) < far(best) ? point : best));
      if (far(nearest) < 80) pick.current(nearest.row);
    };
    container.addEventListener("click", clicked);
    void import("../pictures.js").then(
      ({ draw, stepWithKeys, theme }) => {
        if (ended) return;
        const show = () => {
          const drawn = draw(figure as PageFigure, {
            width: Math.max(240, container.clientWidth),
            theme: theme(),
          });
          panels = drawn.panels;
          const legend = document.createElement("div");
          legend.className = "legend";
          if (drawn.legend !== undefined) legend.append(drawn.legend);
          container.replaceChildren(legend, ...panels.map(({ svg }) => svg));
        };
        stepWithKeys(
          container,
          status.current as HTMLElement,
          () => panels,
          figure.details,
          (row) => pick.current?.(row),
        );
        const sizes = new ResizeObserver(() => {
          if (container.clientWidth === width) return;
          width = container.clientWidth;
          show();
        });
        sizes.observe(container);
        const dark = matchMedia("(prefers-color-scheme: dark)");
        dark.addEventListener("change", show);
        endings.push(
          () => sizes.disconnect(),
          () => dark.removeEventListener("change", show),
          listen("theme", show),
        );
      },
      () => setFailed("The pictures could not be loaded; the data is in the table."),
    );
    return () => {
      ended = true;
      container.removeEventListener("click", clicked);
      for (const end of endings) end();
      container.replaceChildren();
    };
  }, [figure]);
  const save = async (kind: string) => {
    const { save, theme } = await import("../pictures.js");
    await save(kind, figure as PageFigure, chart.current as HTMLElement, theme(), `${name}-${figure.id}`);
  };
  const [title, keys] = [`${figure.id}-title`, `${figure.id}-keys`];
  return (
    <figure class="card" aria-labelledby={title}>
      <figcaption>
        <h2 id={title}>{figure.title}</h2>
        <p class="soft">{figure.description}</p>
      </figcaption>
      <div class="tools" role="group" aria-label={`Save “${figure.title}”`}>
        {["SVG", "PNG", "CSV"].map((kind) => (
          <button
            key={kind}
            type="button"
            class="quiet"
            aria-label={`Save “${figure.title}” as ${kind}`}
            onClick={() => void save(kind.toLowerCase())}
          >
            {kind}
          </button>
        ))}
      </div>
      <div
        class="chart"
        ref={chart}
        tabIndex={0}
        role="group"
        aria-labelledby={title}
        aria-describedby={keys}
      />
      <p class="visually-hidden" id={keys}>
        Left and right arrow keys step through the values{picks === undefined ? "" : `, Enter: ${picks}`}; the
        table has all of them.
      </p>
      <p class="detail" role="status" ref={status} />
      {failed !== undefined && <p role="alert">{failed}</p>}
      {(figure.notes ?? []).map((note) => (
        <p class="soft" key={note}>
          {note}
        </p>
      ))}
      <details>
        <summary>Data of “{figure.title}” as a table</summary>
        <DataTable head={figure.table.head} rows={figure.table.rows} label={figure.title} />
      </details>
    </figure>
  );
}

export function DataTable({ head, rows, label }: { head: string[]; rows: string[][]; label: string }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Data of “${label}”`}>
      <table>
        <thead>
          <tr>
            {head.map((name, at) => (
              <th scope="col" key={at}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, column) => (
                <td key={column}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
