import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

/** A cell of a drawn figure, in pixels of the figure's box; `edge` is where its pictures end on the right. */
export interface Spot {
  left: number;
  top: number;
  wide: number;
  high: number;
  edge: number;
  /** The picture with the cell, and its lower end. */
  svg: SVGSVGElement;
  end: number;
}

/** Points without a cell get a ring of this size. */
const ring = 18;
/** Room that a card needs next to the pictures, and its maximum width below a cell. */
const [besideLeast, mostWide, gap] = [280, 560, 12];

/** The place of a row in its pictures; undefined if none has it. */
export function spotOf(panels: readonly Panel[], row: number, box: HTMLElement): Spot | undefined {
  const origin = box.getBoundingClientRect();
  for (const { svg, points } of panels) {
    const point = points.find((one) => one.row === row);
    if (point === undefined) continue;
    const around = svg.getBoundingClientRect();
    const scale = around.width / svg.viewBox.baseVal.width;
    const [wide, high] = [(point.wide || ring) * scale, (point.high || ring) * scale];
    return {
      left: around.left - origin.left + point.x * scale - wide / 2,
      top: around.top - origin.top + point.y * scale - high / 2,
      ...{ wide, high },
      edge: Math.max(...panels.map((one) => one.svg.getBoundingClientRect().right)) - origin.left,
      ...{ svg, end: around.bottom - origin.top },
    };
  }
  return undefined;
}

/**
 * The outline of the selected cell, and its card: next to the pictures at the height of the cell where there is room, otherwise
 * below the picture with the cell, so that it covers no other cell. The figure grows with it.
 */
export function AtSpot({
  spot,
  box,
  children,
}: {
  spot: Spot;
  box: HTMLElement;
  children: ComponentChildren;
}) {
  const card = useRef<HTMLDivElement>(null);
  const room = box.clientWidth;
  const isBeside = room - spot.edge - gap >= besideLeast;
  const width = isBeside ? Math.min(mostWide, room - spot.edge - gap) : Math.min(mostWide, room);
  const left = isBeside
    ? spot.edge + gap
    : Math.max(0, Math.min(spot.left + spot.wide / 2 - width / 2, room - width));
  const top = isBeside ? Math.max(0, spot.top - gap) : spot.end + 6;
  const shows = children !== undefined && children !== null && children !== false;
  useLayoutEffect(() => {
    const shown = card.current;
    if (shown === null) return;
    const grow = () => {
      box.style.minHeight = `${top + shown.offsetHeight + gap}px`;
      // The next pictures make room.
      if (!isBeside) spot.svg.style.marginBottom = `${shown.offsetHeight + gap}px`;
    };
    const sizes = new ResizeObserver(grow);
    sizes.observe(shown);
    grow();
    return () => {
      sizes.disconnect();
      box.style.removeProperty("min-height");
      spot.svg.style.removeProperty("margin-bottom");
    };
  }, [top, shows, isBeside, spot.svg]);
  return (
    <>
      <div
        class="cell-outline"
        aria-hidden="true"
        style={{
          left: `${spot.left}px`,
          top: `${spot.top}px`,
          width: `${spot.wide}px`,
          height: `${spot.high}px`,
        }}
      />
      {shows && (
        <div class="at-cell" ref={card} style={{ left: `${left}px`, top: `${top}px`, width: `${width}px` }}>
          <InView key={`${spot.left} ${spot.top}`} of={card} />
          {children}
        </div>
      )}
    </>
  );
}

/** Scrolls a card into view once, when the selection moves to another cell. */
function InView({ of }: { of: { current: HTMLElement | null } }) {
  useEffect(() => of.current?.scrollIntoView({ block: "nearest" }), []);
  return null;
}
