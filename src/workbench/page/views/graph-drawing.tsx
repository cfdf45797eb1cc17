import { useMemo } from "preact/hooks";
import { shortToken } from "../../../findings/graph.js";
import { type Dot, diamond, type GraphLayout, type Line, triangle } from "../../../findings/graph-layout.js";

/** How a node is marked, besides being pointed at. */
export interface DrawnMark {
  /** `pinned`, `grouped` or `only`, for nodes that the compared graph does not have. */
  kind: "pinned" | "grouped" | "only";
  /** The number of its supernode. */
  text?: string;
}

interface DrawingProps {
  layout: GraphLayout;
  label: string;
  /** The node that is pointed at or pinned. */
  shown: number | undefined;
  /** By node. */
  marks: ReadonlyMap<number, DrawnMark>;
  onPoint: (node: number | undefined) => void;
  /** `adds`: with Shift, the node is added to the selection instead. */
  onPick: (at: number, adds: boolean) => void;
  onFocus: () => void;
  onKey: (key: string) => boolean;
}

/**
 * A graph in two layers. All edges are in the lower one, which is drawn once and only faded; the upper one has the nodes, and the
 * edges of the shown node on top. Thousands of edges thus cost nothing while the pointer moves.
 */
export function GraphDrawing(props: DrawingProps) {
  const { layout, label, shown, marks, onPoint, onPick, onFocus, onKey } = props;
  const { width, height, dots, lines } = layout;
  const size = { viewBox: `0 0 ${width} ${height}`, width, height };
  const edges = useMemo(
    () => (
      <svg {...size} class="edges" aria-hidden="true">
        {lines.map((line, at) => (
          <Edge key={at} line={line} opacity={line.opacity} />
        ))}
      </svg>
    ),
    [layout],
  );
  const nodes = useMemo(() => <Nodes layout={layout} />, [layout]);
  const places = useMemo(() => new Map(dots.map((dot, at) => [dot.index, at])), [layout]);
  const byNode = useMemo(() => linesByNode(lines), [layout]);
  const at = (event: Event) => {
    const node = (event.target as Element).closest("[data-node]")?.getAttribute("data-node");
    return node === null || node === undefined ? undefined : Number(node);
  };
  const dotOf = (index: number) => dots[places.get(index) ?? -1];
  const focus = shown === undefined ? undefined : dotOf(shown);
  return (
    <div class={focus === undefined ? "layers" : "layers focused"}>
      {edges}
      {/* biome-ignore lint/a11y/useKeyWithMouseEvents: the arrow keys do the same. */}
      <svg
        {...size}
        font-size={11}
        fill="currentColor"
        role="application"
        tabIndex={0}
        aria-label={label}
        onFocus={(event) => {
          // A click on a node also focuses the picture.
          if (event.currentTarget.matches(":focus-visible")) onFocus();
        }}
        onBlur={() => onPoint(undefined)}
        onMouseOver={(event) => onPoint(at(event))}
        onMouseLeave={() => onPoint(undefined)}
        onClick={(event) => {
          const place = places.get(at(event) ?? -1);
          if (place !== undefined) onPick(place, event.shiftKey);
        }}
        onKeyDown={(event) => {
          if (!event.ctrlKey && !event.metaKey && !event.altKey && onKey(event.key)) event.preventDefault();
        }}
      >
        <g class="own-edges">
          {(shown === undefined ? [] : (byNode.get(shown) ?? [])).map((line) => (
            <Edge key={`${line.edge.source} ${line.edge.target}`} line={line} opacity={0.9} />
          ))}
        </g>
        {[...marks].map(([index, mark]) => {
          const dot = dotOf(index);
          return dot === undefined ? null : <MarkRing key={index} dot={dot} mark={mark} />;
        })}
        {focus !== undefined && (
          <circle class="ring" cx={focus.x} cy={focus.y} r={Math.max(6, focus.size)} fill="none" />
        )}
        {nodes}
      </svg>
    </div>
  );
}

function Edge({ line: { path, color, width }, opacity }: { line: Line; opacity: number }) {
  return <path d={path} fill="none" stroke={color} stroke-width={width} stroke-opacity={opacity} />;
}

function MarkRing({ dot: { x, y, size }, mark: { kind, text } }: { dot: Dot; mark: DrawnMark }) {
  const r = Math.max(6, size) + 2;
  return (
    <g class={`mark ${kind}`}>
      <circle cx={x} cy={y} r={r} fill="none" />
      {text !== undefined && (
        <text x={x + r} y={y - r + 3} font-size={9}>
          {text}
        </text>
      )}
    </g>
  );
}

function Nodes({ layout: { dots, tokens, blocks } }: { layout: GraphLayout }) {
  return (
    <>
      {dots.map((dot) => (
        <g key={dot.index} class="node" data-node={dot.index}>
          <circle
            class="area"
            cx={dot.x}
            cy={dot.y}
            r={Math.max(6, dot.size)}
            fill="none"
            pointer-events="all"
          />
          <Mark dot={dot} />
        </g>
      ))}
      {tokens.map(({ text, x, y }) => (
        <text key={x} x={x} y={y} text-anchor="middle">
          {shortToken(text)}
        </text>
      ))}
      {blocks.map(({ layer, x, y }) => (
        <text key={layer} x={x} y={y} text-anchor="end" class="soft">
          {layer === 0 ? "block 0" : layer}
        </text>
      ))}
    </>
  );
}

/** Full for nodes that others explain, hollow for those where the graph begins and ends. */
function Mark({ dot }: { dot: Dot }) {
  const { node, x, y, size } = dot;
  const ink = { fill: "currentColor", stroke: "currentColor" };
  const hollow = { ...ink, fill: "none" };
  switch (node.kind) {
    case "neuron":
    case "feature":
      return <circle cx={x} cy={y} r={size} {...ink} />;
    case "head":
      return <rect x={x - size} y={y - size} width={2 * size} height={2 * size} {...ink} />;
    case "error":
      return <path d={triangle(dot)} {...hollow} />;
    case "rest":
    case "rounding":
      return <path d={diamond(dot)} {...hollow} />;
    default:
      return <circle cx={x} cy={y} r={size} {...hollow} />;
  }
}

function linesByNode(lines: readonly Line[]): Map<number, Line[]> {
  const found = new Map<number, Line[]>();
  for (const line of lines) {
    for (const end of [line.edge.source, line.edge.target]) {
      const list = found.get(end);
      if (list === undefined) found.set(end, [line]);
      else list.push(line);
    }
  }
  return found;
}

const directions: Readonly<Record<string, readonly [x: number, y: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** The nearest node in the direction of an arrow key; the same one without any, undefined for other keys. */
export function nextDot(dots: readonly Dot[], at: number, key: string): number | undefined {
  const direction = directions[key];
  if (direction === undefined) return undefined;
  const [from, [right, down]] = [dots[at] as Dot, direction];
  let best = at;
  let least = Number.POSITIVE_INFINITY;
  for (const [other, { x, y }] of dots.entries()) {
    const along = (x - from.x) * right + (y - from.y) * down;
    const across = Math.abs((x - from.x) * down) + Math.abs((y - from.y) * right);
    // Sideways moves stay in the row.
    if (along <= 0 || (right !== 0 && across > 0)) continue;
    if (along + across / 2 < least) [best, least] = [other, along + across / 2];
  }
  return best;
}
