import { axis, frame, panel, tip } from "./frame.js";
import { seriesLegend, symbols } from "./legend.js";
import { spaced } from "./ticks.js";

/**
 * Lines and dots, one line per series; with `panel`, a small picture per value.
 * @param {PageFigure} figure
 * @param {Row[]} rows
 * @param {Space} space
 * @returns {Drawn}
 */
export function drawLines(figure, rows, space) {
  const { axes, chart } = figure;
  const { width, theme } = space;
  if (chart.panel !== undefined) {
    const each = panelWidth(width, axes.series.length);
    return {
      panels: axes.series.map((/** @type {SeriesPlace} */ { name, largest }) =>
        onePanel(
          figure,
          rows.filter((row) => String(row[chart.series]) === name),
          [{ name, color: /** @type {string} */ (theme.series[0]), symbol: "circle", wide: false, largest }],
          { width: each, theme },
          `${chart.panel.label} ${name}`.trim(),
        ),
      ),
    };
  }
  const series = styles(axes.series, theme);
  return {
    legend: seriesLegend(
      series.map((one) => (chart.dots ? one : { ...one, symbol: undefined })),
      space,
    ),
    panels: [onePanel(figure, rows, series, space)],
  };
}

/**
 * The width of pictures that share a row.
 * @param {number} width
 * @param {number} count
 * @param {number} [together] number of pictures that belong side by side if there is room
 */
export function panelWidth(width, count, together = 1) {
  const most = Math.max(1, Math.min(count, Math.floor(width / 230)));
  const across = most > together ? most - (most % together) : most;
  return Math.min(360, Math.floor((width - (across - 1) * 10) / across));
}

/** @typedef {{ name: string, place: number, wide: boolean, largest: number }} SeriesPlace */

/**
 * With many series, colours cannot distinguish them, so all but the emphasized one are muted.
 * @param {SeriesPlace[]} series
 * @param {Theme} theme
 */
export function styles(series, theme) {
  const crowded = series.length > theme.series.length;
  return series.map(({ name, place, wide, largest }) => ({
    name,
    color: /** @type {string} */ (crowded && !wide ? theme.soft : theme.series[place % theme.series.length]),
    symbol: symbols[place % symbols.length],
    wide,
    largest,
  }));
}

/**
 * @param {PageFigure} figure
 * @param {Row[]} rows
 * @param {{name: string, color: string, symbol?: string, wide: boolean, largest: number}[]} series
 * @param {Space} space
 * @param {string} [part]
 * @returns {Panel}
 */
function onePanel(figure, rows, series, { width, theme }, part) {
  const {
    x,
    y,
    series: by,
    xAxis,
    yAxis,
    xDomain,
    yDomain,
    steps,
    mark,
    diagonal,
    size,
    dots,
    interval,
  } = figure.chart;
  const square = xDomain !== undefined && String(xDomain) === String(yDomain);
  const wide = square ? Math.min(width, 440) : width;
  const { x: across, y: upwards, steps: values, logarithmic } = figure.axes;
  const largest = Math.max(...series.map((one) => one.largest));
  // Error bars at the same place are next to each other.
  const apart = new Set(rows.map((row) => row[x])).size < rows.length ? 4 : 0;
  const offsetOf = (/** @type {string} */ name) =>
    apart * (series.findIndex((one) => one.name === name) - (series.length - 1) / 2);
  // Strong lines are drawn last, on top.
  const drawn = [...series].sort((a, b) => Number(a.wide) - Number(b.wide));
  const plot = Plot.plot({
    ...frame(figure, theme, part),
    width: wide,
    height: square ? Math.round(wide * 0.85) + 20 : Math.min(360, Math.round(wide * 0.55) + 60),
    marginTop: part === undefined && mark === undefined ? 24 : 40,
    marginLeft: 48,
    marginRight: 16,
    marginBottom: 38,
    // Room for the largest dots, which would cover the ticks.
    inset: size === undefined ? 0 : radius(largest, largest),
    x: steps
      ? { type: "point", domain: values, label: xAxis, padding: 0.3 }
      : { label: xAxis, domain: across, labelArrow: "none" },
    y: { label: yAxis, domain: upwards, type: logarithmic ? "log" : "linear", labelArrow: "none" },
    marks: [
      Plot.gridY({ stroke: theme.line, strokeOpacity: 1, ticks: logarithmic ? 4 : 5 }),
      Plot.axisX({
        ...axis(theme, xAxis),
        stroke: null,
        tickSize: 4,
        // Room for five digits per tick: on a phone, 1000 next to 1200 would read as one number.
        ticks: steps ? spaced(values, wide - 64) : square ? 5 : Math.max(2, Math.floor((wide - 64) / 56)),
        // Not "~g": with few ticks it writes 20 as 2e+1.
        tickFormat: (/** @type {number} */ value) => String(Number(value.toPrecision(6))),
      }),
      Plot.axisY({ ...axis(theme, yAxis), ticks: 5, tickFormat: "~g" }),
      ...(part === undefined
        ? []
        : [Plot.text([part], { frameAnchor: "top-right", dy: -24, fill: theme.ink, fontWeight: 600 })]),
      ...(mark === undefined
        ? []
        : [
            Plot.ruleX([mark.x], { stroke: theme.soft, strokeDasharray: "4,4" }),
            Plot.text([mark], {
              x: "x",
              text: "label",
              frameAnchor: "top",
              textAnchor: "start",
              dx: 5,
              dy: -12,
              fill: theme.soft,
            }),
          ]),
      ...(diagonal === undefined
        ? []
        : [
            Plot.line(
              [
                [0, 0],
                [1, 1],
              ],
              { stroke: theme.soft, strokeDasharray: "4,4" },
            ),
            Plot.text([[0.62, 0.54]], {
              text: [diagonal],
              fill: theme.soft,
              stroke: theme.card,
              strokeWidth: 4,
              textAnchor: "start",
            }),
          ]),
      ...drawn.flatMap(({ name, color, symbol, wide: strong }) => {
        const own = rows.filter((row) => String(row[by]) === name);
        return [
          Plot.line(own, { x, y, stroke: color, strokeWidth: strong ? 3.5 : 1.75 }),
          ...(interval === undefined ? [] : [intervals(own, interval, x, color, offsetOf(name))]),
          ...(dots
            ? [
                Plot.dot(own, {
                  x,
                  y,
                  fill: color,
                  symbol,
                  r:
                    size === undefined
                      ? strong
                        ? 4.5
                        : 3.5
                      : { value: (/** @type {Row} */ row) => radius(row[size], largest), scale: false },
                }),
              ]
            : []),
        ];
      }),
      tip(rows, figure.details, { x, y }),
    ],
  });
  return panel(plot, rows, (row) => [row[x], row[y]]);
}

/**
 * Error bars, with an offset in pixels.
 * @param {Row[]} own
 * @param {{low: string, high: string}} interval
 * @param {string} x
 * @param {string} color
 * @param {number} offset
 */
function intervals(own, { low, high }, x, color, offset) {
  const known = own.filter((row) => row[low] !== null);
  return Plot.ruleX(known, {
    x,
    y1: low,
    y2: high,
    stroke: color,
    strokeWidth: 2,
    strokeOpacity: 0.75,
    dx: offset,
  });
}

/**
 * The area is proportional to the number.
 * @param {string | number | null | undefined} value
 * @param {number} largest
 */
function radius(value, largest) {
  return 2 + 7 * Math.sqrt(Number(value) / largest);
}
