/** @type {Record<string, Theme>} */
const themes = {
  light: {
    ink: "#1d1f23",
    soft: "#5a6068",
    line: "#dedbd3",
    card: "#ffffff",
    series: ["#0b5d66", "#b5490f", "#5b4bb5", "#746a00", "#b0246e", "#2268b8", "#477a22", "#6b5b4f"],
    ramp: ["#f1f5f3", "#07505a"],
    diverging: ["#a8430a", "#f6f4ef", "#0b5d66"],
  },
  dark: {
    ink: "#e8e6e1",
    soft: "#a3a9b2",
    line: "#33383f",
    card: "#1c1f23",
    series: ["#6cc7d1", "#ffa95e", "#b3a6ff", "#d9cf4a", "#ff8fc4", "#8ab8ff", "#a5d67a", "#cdb8a8"],
    ramp: ["#262b30", "#7fdbe4"],
    diverging: ["#ff9a4d", "#262b30", "#6cc7d1"],
  },
};

/** The current colours: chosen on the page, or the system's. */
export function theme() {
  const chosen = document.documentElement.dataset.theme;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  return /** @type {Theme} */ (themes[chosen ?? system]);
}

/** Paper is white. */
export function paperTheme() {
  return /** @type {Theme} */ (themes.light);
}

/**
 * Black or white, whichever has the higher contrast on a colour (WCAG 2).
 * @param {string} color
 */
export function readableOn(color) {
  const { r, g, b } = d3.rgb(color);
  const [red, green, blue] = [r, g, b].map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * Number(red) + 0.7152 * Number(green) + 0.0722 * Number(blue);
  return luminance > 0.179 ? "#101214" : "#ffffff";
}
