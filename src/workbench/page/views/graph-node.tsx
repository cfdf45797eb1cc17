import type { ComponentChildren } from "preact";
import type { GraphEdge } from "../../../contracts/index.js";
import { sentence } from "../../../findings/finding.js";
import { featureText, nodeName } from "../../../findings/graph.js";
import { neighbours } from "../../../findings/graph-layout.js";
import { figureOf, percent, signed } from "../../../findings/numbers.js";
import type { DrawnGraph, DrawnNode } from "../graph-file.js";
import { Button } from "./form.js";

/** Listed parents and children of a node. */
const listed = 6;

interface DetailsProps {
  result: DrawnGraph;
  index: number;
  isSelected: boolean;
  /** Clears the selection. */
  clear: () => void;
  /** Pinned, or in a supernode. */
  isPinned: boolean;
  onPin: () => void;
  /** What is offered for a selected node. */
  actions: ((node: DrawnNode) => ComponentChildren) | undefined;
}

/** A node's figures, and its strongest parents and children. */
export function NodeDetails(props: DetailsProps) {
  const { result, index, isSelected, clear, isPinned, onPin, actions } = props;
  const node = result.nodes[index] as DrawnNode;
  const { parents, children } = neighbours(result.edges, index, listed);
  const about = featureText(result, node);
  return (
    <>
      <p>
        <strong>
          <bdi>{sentence(nameOf(result, node))}</bdi>
        </strong>
        {node.kind !== "target" && `, ${percent(node.influence)} of the influence`}
        {node.value !== null && `, value ${figureOf(node.value)}`}.{" "}
        {isSelected && (
          <>
            <Button class="quiet" onClick={onPin}>
              {isPinned ? "Unpin" : "Pin"}
            </Button>{" "}
            <Button class="quiet" onClick={clear}>
              Clear selection
            </Button>
          </>
        )}
      </p>
      {about !== undefined && <p class="soft">{about}</p>}
      {isSelected && actions?.(node)}
      <div class="graph-neighbours">
        <Neighbours result={result} title="Strongest parents" edges={parents} end="source" />
        <Neighbours result={result} title="Strongest children" edges={children} end="target" />
      </div>
    </>
  );
}

/** The node's own name, such as an imported label, or tapline's. */
export function nameOf(graph: DrawnGraph, node: DrawnNode): string {
  return node.label ?? nodeName(graph, node);
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
