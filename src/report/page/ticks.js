/**
 * The steps whose labels have room next to each other, at even distances.
 * @param {(number | string)[]} steps
 * @param {number} width in pixels
 */
export function spaced(steps, width) {
  const digits = Math.max(...steps.map((step) => String(step).length));
  const every = Math.ceil((steps.length * (7 * digits + 6)) / width);
  return steps.filter((_, index) => index % Math.max(1, every) === 0);
}
