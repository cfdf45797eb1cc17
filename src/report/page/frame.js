import { font } from "./text.js";

/**
 * Options shared by all pictures.
 * @param {{title: string}} figure
 * @param {Theme} theme
 * @param {string} [part]
 */
export function frame({ title }, theme, part) {
  return {
    ariaLabel: part === undefined ? title : `${title}: ${part}`,
    color: { type: "identity" },
    style: {
      color: theme.ink,
      "--plot-background": theme.card,
      background: "transparent",
      fontFamily: font,
      fontSize: "12px",
    },
  };
}

/**
 * Options that most axes share: without arrow and tick marks.
 * @param {Theme} theme
 * @param {string | null} label
 */
export function axis(theme, label) {
  return { label, labelArrow: "none", tickSize: 0, fill: theme.soft };
}

/**
 * The tooltip of a row.
 * @param {Row[]} rows
 * @param {string[]} details
 * @param {object} channels
 */
export function tip(rows, details, channels) {
  return Plot.tip(
    rows,
    Plot.pointer({
      ...channels,
      title: (/** @type {Row} */ { row }) => details[row],
      fontSize: 12,
      lineWidth: 40,
      maxRadius: 60,
    }),
  );
}

/**
 * Finishes a picture. Screen readers use the figure's title, description, steps and table instead.
 * @param {any} plot
 * @param {Row[]} rows
 * @param {(row: Row) => [unknown, unknown]} place
 * @returns {Panel}
 */
export function panel(plot, rows, place) {
  plot.setAttribute("aria-hidden", "true");
  const [x, y] = [plot.scale("x"), plot.scale("y")];
  const middle = (/** @type {any} */ scale, /** @type {unknown} */ value) =>
    scale.apply(value) + (scale.bandwidth ?? 0) / 2;
  return {
    svg: plot,
    points: rows.map((row) => {
      const [across, down] = place(row);
      return {
        ...{ x: middle(x, across), y: middle(y, down), row: row.row },
        ...{ wide: x.bandwidth ?? 0, high: y.bandwidth ?? 0 },
      };
    }),
  };
}
