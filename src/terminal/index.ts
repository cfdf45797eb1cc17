export { bars } from "./bars.js";
export { type Canvas, type Colors, canvasOf, colorsOf, narrowest } from "./canvas.js";
export { legend } from "./legend.js";
export { lensGrid } from "./lens-grid.js";
export { normsGrid } from "./norms-grid.js";
export { bold, dim, magnitudeScale, probabilityScale } from "./paint.js";
export { ProgressLine } from "./progress-line.js";
export { story } from "./story.js";
export { cut, fit, oneLine, visible, width, wrap } from "./text.js";
