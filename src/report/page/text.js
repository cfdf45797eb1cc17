export const font = 'system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif';

const measure = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));

/**
 * The width of a text in pixels.
 * @param {string} text
 * @param {number} size
 */
export function textWidth(text, size) {
  measure.font = `${size}px ${font}`;
  return measure.measureText(text).width;
}

/**
 * Truncates a text to a width, ending in `…`.
 * @param {string} text
 * @param {number} size
 * @param {number} room
 */
export function cutText(text, size, room) {
  if (textWidth(text, size) <= room) return text;
  const characters = Array.from(text);
  while (characters.length > 0 && textWidth(`${characters.join("")}…`, size) > room) characters.pop();
  return characters.length > 0 ? `${characters.join("")}…` : "";
}
