/**
 * Lets the arrow keys step through a picture's points: each shows its tooltip and is announced to screen readers.
 * @param {HTMLElement} container
 * @param {HTMLElement} status
 * @param {() => Panel[]} panels
 * @param {string[]} details
 * @param {(row: number) => void} [choose] called for Enter on a point
 * @param {AbortSignal} [signal] removes the listeners
 */
export function stepWithKeys(container, status, panels, details, choose, signal) {
  let at = -1;
  const step = (/** @type {KeyboardEvent} */ event) => {
    const points = panels().flatMap(({ svg, points }) => points.map((point) => ({ svg, ...point })));
    const chosen = points[at];
    if (event.key === "Enter" && chosen !== undefined) choose?.(chosen.row);
    const next = target(event.key, at, points.length);
    if (next === undefined) return;
    event.preventDefault();
    leave(panels());
    at = next;
    const point = points[at];
    status.textContent = point === undefined ? "" : (details[point.row] ?? "").replaceAll("\n", ", ");
    if (point !== undefined) hover(point);
  };
  const blur = () => {
    leave(panels());
    at = -1;
    status.textContent = "";
  };
  const ending = signal === undefined ? {} : { signal };
  container.addEventListener("keydown", step, ending);
  container.addEventListener("blur", blur, ending);
}

/**
 * @param {string} key
 * @param {number} at
 * @param {number} count
 */
function target(key, at, count) {
  if (key === "Escape") return -1;
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  if (key === "ArrowRight") return Math.min(count - 1, at + 1);
  if (key === "ArrowLeft") return Math.max(0, at - 1);
  return undefined;
}

/** @param {Point & {svg: SVGSVGElement}} point */
function hover({ svg, x, y }) {
  const box = svg.getBoundingClientRect();
  const scale = box.width / svg.viewBox.baseVal.width;
  const place = { clientX: box.left + x * scale, clientY: box.top + y * scale, pointerType: "mouse" };
  svg.dispatchEvent(new PointerEvent("pointermove", place));
}

/** @param {Panel[]} panels */
function leave(panels) {
  for (const { svg } of panels) svg.dispatchEvent(new PointerEvent("pointerleave", { pointerType: "mouse" }));
}
