import { cutText, font, textWidth } from "./text.js";

const size = 12;

/**
 * Names of series with their marks, wrapped to the width.
 * @param {{name: string, color: string, symbol?: string, wide?: boolean}[]} series
 * @param {Space} space
 * @param {{ lines: boolean }} [marks] whether the series are lines, or only points
 * @returns {SVGSVGElement}
 */
export function seriesLegend(series, { width, theme }, { lines } = { lines: true }) {
  const [rowHeight, gap] = [20, 18];
  let [x, y] = [0, 0];
  const svg = d3.create("svg").attr("aria-hidden", "true");
  for (const { name, color, symbol, wide } of series) {
    const label = cutText(name, size, width - 30);
    const room = 24 + textWidth(label, size);
    if (x > 0 && x + room > width) {
      x = 0;
      y += rowHeight;
    }
    const entry = svg.append("g").attr("transform", `translate(${x},${y})`);
    if (lines) {
      entry
        .append("path")
        .attr("d", "M0,10H18")
        .attr("stroke", color)
        .attr("stroke-width", wide ? 3.5 : 1.75);
    }
    if (symbol !== undefined) {
      entry
        .append("path")
        .attr("d", d3.symbol(symbolType(symbol), 45)())
        .attr("transform", "translate(9,10)")
        .attr("fill", color);
    }
    entry.append("text").attr("x", 24).attr("y", 14).attr("fill", theme.ink).text(label);
    x += room + gap;
  }
  return svg
    .attr("width", width)
    .attr("height", y + rowHeight)
    .attr("viewBox", `0 0 ${width} ${y + rowHeight}`)
    .attr("font-size", size)
    .attr("font-family", font)
    .node();
}

/** Shapes that distinguish series without colour. */
export const symbols = ["circle", "square", "triangle", "diamond", "cross", "star", "wye", "times"];

/** @param {string} name */
function symbolType(name) {
  return d3[`symbol${name[0]?.toUpperCase()}${name.slice(1)}`];
}

/**
 * A colour scale with its label.
 * @param {object} color
 * @param {{ value: number, text: string }[]} ticks
 * @param {Theme} theme
 * @returns {SVGSVGElement}
 */
export function rampLegend(color, ticks, theme) {
  const legend = Plot.legend({
    color,
    width: 240,
    // Room for half of the last label.
    marginRight: 24,
    marginLeft: 24,
    ticks: ticks.map(({ value }) => value),
    tickFormat: (/** @type {number} */ _, /** @type {number} */ at) => ticks[at]?.text ?? "",
    style: { color: theme.ink, background: "transparent", fontFamily: font, fontSize: "12px" },
  });
  legend.setAttribute("aria-hidden", "true");
  return legend;
}
