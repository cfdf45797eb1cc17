import { useMemo, useRef, useState } from "preact/hooks";
import type { GraphEdge } from "../../../contracts/index.js";
import { sentence } from "../../../findings/finding.js";
import { nodeName, shortToken } from "../../../findings/graph.js";
import { type Dot, diamond, graphLayout, neighbours } from "../../../findings/graph-layout.js";
import { figureOf, percent, signed } from "../../../findings/numbers.js";
import { addEdit } from "../chat-settings.js";
import type { DrawnGraph, DrawnNode } from "../graph-file.js";
import type { JobFindings } from "../jobs.js";
import { known } from "../store.js";
import { ChatLink } from "./chat-settings.js";
import { headEdit } from "./edits.js";
import { Button } from "./form.js";
import { type SaveKind, SaveTools } from "./picture.js";

/** Listed parents and children of a node. */
const listed = 6;

interface GraphPictureProps {
  result: DrawnGraph;
  /** Of saved files, without extension. */
  name: string;
  /** Suffix of its labels, if the page has two graphs. */
  of?: string;
}

/** The graph of a job. */
export function JobGraph({
  job: { id, result },
  of = "",
}: {
  job: JobFindings<"graph">["job"];
  of?: string;
}) {
  return <GraphPicture key={id} result={result} name={`tapline-graph-${id.slice(0, 8)}-graph`} of={of} />;
}

/**
 * An attribution graph. Pointing at a node, or moving to it with the arrow keys, shows its strongest parents and children; a
 * click or Enter pins it.
 */
export function GraphPicture({ result, name, of = "" }: GraphPictureProps) {
  const layout = useMemo(() => graphLayout(result), [result]);
  const strongest = layout.dots.findIndex(({ node }) => node.kind === "target");
  const [pointed, setPointed] = useState<number>();
  const [pinned, setPinned] = useState<number>();
  const [current, setCurrent] = useState(Math.max(0, strongest));
  const drawing = useRef<HTMLDivElement>(null);
  const shown = pointed ?? pinned;
  const touching = (edge: GraphEdge) => edge.source === shown || edge.target === shown;
  const move = (at: number) => {
    setCurrent(at);
    setPointed(layout.dots[at]?.index);
  };
  const pin = (index: number) => setPinned((before) => (before === index ? undefined : index));
  const title = `Attribution graph${of}`;
  const save = async (kind: SaveKind) => {
    const { saveElement, saveTable } = await import("../pictures.js");
    if (kind !== "csv") return saveElement(kind, name, title, drawing.current as HTMLElement);
    saveTable(name, columns, rowsOf(result));
  };
  return (
    <section class="card picture graph" aria-label={title}>
      <h2>Attribution graph</h2>
      <SaveTools title={title} save={save} />
      <p class="soft">
        Tokens from left to right, blocks upwards. Circles are neurons, squares heads, diamonds other neurons
        or rounding. Point at a node to see its strongest parents and children; click to pin it.
      </p>
      <div
        class="scroll"
        role="group"
        aria-label={`Picture of the graph${of}; scrolls sideways`}
        tabIndex={0}
      >
        <div class="whole" ref={drawing}>
          <svg
            viewBox={`0 0 ${layout.width} ${layout.height}`}
            width={layout.width}
            height={layout.height}
            font-size={11}
            fill="currentColor"
            role="application"
            tabIndex={0}
            aria-label={`Nodes of the graph${of}; arrow keys move between them, Enter pins one`}
            onFocus={(event) => {
              // A click on a node also focuses the picture.
              if (event.currentTarget.matches(":focus-visible")) setPointed(layout.dots[current]?.index);
            }}
            onBlur={() => setPointed(undefined)}
            onKeyDown={(event) => {
              const dot = layout.dots[current];
              if (dot !== undefined && (event.key === "Enter" || event.key === " ")) pin(dot.index);
              else if (event.key === "Escape") setPinned(undefined);
              else if (event.key in directions) move(next(layout.dots, current, event.key));
              else return;
              event.preventDefault();
            }}
          >
            {layout.lines.map(({ edge, path, color, width, opacity }) => (
              <path
                key={`${edge.source} ${edge.target}`}
                d={path}
                fill="none"
                stroke={color}
                stroke-width={width}
                stroke-opacity={shown === undefined ? opacity : touching(edge) ? 0.9 : 0.04}
              />
            ))}
            {layout.dots.map((dot, at) => (
              // biome-ignore lint/a11y/noStaticElementInteractions: the arrow keys and Enter do the same.
              <g
                key={dot.index}
                class={shown === dot.index ? "node shown" : "node"}
                data-node={dot.index}
                onMouseEnter={() => setPointed(dot.index)}
                onMouseLeave={() => setPointed(undefined)}
                onClick={() => {
                  setCurrent(at);
                  pin(dot.index);
                }}
              >
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
            {layout.tokens.map(({ text, x, y }) => (
              <text key={x} x={x} y={y} text-anchor="middle">
                {shortToken(text)}
              </text>
            ))}
            {layout.blocks.map(({ layer, x, y }) => (
              <text key={layer} x={x} y={y} text-anchor="end" class="soft">
                {layer === 0 ? "block 0" : layer}
              </text>
            ))}
          </svg>
        </div>
      </div>
      <div aria-live="polite">
        {shown === undefined ? (
          <p class="soft">No node selected.</p>
        ) : (
          <NodeDetails
            result={result}
            index={shown}
            isPinned={pinned === shown}
            unpin={() => setPinned(undefined)}
          />
        )}
      </div>
    </section>
  );
}

function nameOf(graph: DrawnGraph, node: DrawnNode): string {
  return node.label ?? nodeName(graph, node);
}

const columns = ["source", "target", "adds", "share of the influence"];

/** The edges of a graph, the strongest first. */
function rowsOf(result: DrawnGraph): (string | number)[][] {
  const name = (at: number) => nameOf(result, result.nodes[at] as DrawnNode);
  return result.edges.map(({ source, target, value, influence }) => [
    ...[name(source), name(target)],
    ...[value, influence],
  ]);
}

const directions: Readonly<Record<string, readonly [x: number, y: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** The nearest node in a direction; the same one without any. */
function next(dots: readonly Dot[], at: number, key: string): number {
  const [from, [right, down]] = [dots[at] as Dot, directions[key] as readonly [number, number]];
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

/** Full for nodes that others explain, hollow for those where the graph begins and ends. */
function Mark({ dot }: { dot: Dot }) {
  const { node, x, y, size } = dot;
  const ink = { fill: "currentColor", stroke: "currentColor" };
  const hollow = { ...ink, fill: "none" };
  switch (node.kind) {
    case "neuron":
      return <circle cx={x} cy={y} r={size} {...ink} />;
    case "head":
      return <rect x={x - size} y={y - size} width={2 * size} height={2 * size} {...ink} />;
    case "rest":
    case "rounding":
      return <path d={diamond(dot)} {...hollow} />;
    default:
      return <circle cx={x} cy={y} r={size} {...hollow} />;
  }
}

interface DetailsProps {
  result: DrawnGraph;
  index: number;
  isPinned: boolean;
  unpin: () => void;
}

function NodeDetails({ result, index, isPinned, unpin }: DetailsProps) {
  const node = result.nodes[index] as DrawnNode;
  const { parents, children } = neighbours(result.edges, index, listed);
  const name = nameOf(result, node);
  return (
    <>
      <p>
        <strong>{sentence(name)}</strong>
        {node.kind !== "target" && `, ${percent(node.influence)} of the influence`}
        {node.value !== null && `, value ${figureOf(node.value)}`}.{" "}
        {isPinned && (
          <Button class="quiet" onClick={unpin}>
            Unpin
          </Button>
        )}
      </p>
      {isPinned && <HeadLink result={result} node={node} />}
      <div class="graph-neighbours">
        <Neighbours result={result} title="Strongest parents" edges={parents} end="source" />
        <Neighbours result={result} title="Strongest children" edges={children} end="target" />
      </div>
    </>
  );
}

/** Chat can edit heads, but not single neurons, and the served model may be another one. */
function HeadLink({
  result: { blocks },
  node: { kind, layer, index },
}: {
  result: DrawnGraph;
  node: DrawnNode;
}) {
  const server = known.state?.server;
  const isOffered = server?.points.includes("head_out") === true && server.n_layer === blocks;
  if (kind !== "head" || layer === null || index === null || !isOffered) return null;
  return (
    <p>
      <ChatLink prepare={() => addEdit(headEdit(layer, index))}>Ablate this head in chat</ChatLink>
    </p>
  );
}

interface NeighboursProps {
  result: DrawnGraph;
  title: string;
  edges: readonly GraphEdge[];
  end: "source" | "target";
}

function Neighbours({ result, title, edges, end }: NeighboursProps) {
  return (
    <div>
      <h3>{title}</h3>
      {edges.length === 0 ? (
        <p class="soft">None in the graph.</p>
      ) : (
        <ul>
          {edges.map((edge) => (
            <li key={edge[end]}>
              {nameOf(result, result.nodes[edge[end]] as DrawnNode)}{" "}
              <span class="number">{signed(edge.value)}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
