import { useState } from "preact/hooks";
import type { GraphNode } from "../../../contracts/index.js";
import { nodeName } from "../../../findings/graph.js";
import { count, percent, signed } from "../../../findings/numbers.js";
import type { DrawnGraph } from "../graph-file.js";
import {
  dissolved,
  type GraphMarks,
  grouped,
  noMarks,
  renamed,
  type SupernodeEdge,
  supernodeEdges,
} from "../graph-marks.js";
import { Field } from "./fields.js";
import { Button, Form, Problem, useTrying } from "./form.js";

/** Listed edges between supernodes. */
const listed = 12;

interface SupernodesProps {
  result: DrawnGraph;
  ids: readonly string[];
  marks: GraphMarks;
  onMarks: (marks: GraphMarks) => void;
  of: string;
  onSave: () => Promise<void>;
}

/** Groups pinned nodes into named supernodes, shows what these add to each other, and saves the file with both. */
export function Supernodes({ result, ids, marks, onMarks, of, onSave }: SupernodesProps) {
  const [name, setName] = useState("");
  const { problem, trying } = useTrying();
  const { pinned, supernodes } = marks;
  const group = () =>
    trying(async () => {
      onMarks(grouped(marks, name));
      setName("");
    });
  return (
    <section aria-label={`Supernodes${of}`} class="supernodes">
      <h3>Supernodes</h3>
      <Form class="row" onSubmit={group} problem={problem}>
        <span>{count(pinned.length, "pinned node")}</span>
        <Field label="Name" value={name} onChange={setName} />
        <button type="submit" disabled={pinned.length === 0}>
          Group pinned nodes
        </button>
        {pinned.length + supernodes.length > 0 && (
          <Button class="quiet" onClick={() => onMarks(noMarks)}>
            Clear all
          </Button>
        )}
        <SaveGraph onSave={onSave} />
      </Form>
      {supernodes.length > 0 && (
        <>
          <ul class="plain">
            {supernodes.map((one, at) => (
              <li class="row" key={`${at} ${one.name}`}>
                <span class="number">{at + 1}</span>
                <Name name={one.name} at={at} onName={(to) => onMarks(renamed(marks, at, to))} />
                <span class="soft">
                  {count(one.nodes.length, "node")}, {percent(influenceOf(one.nodes, ids, result.nodes))} of
                  the influence
                </span>
                <Button
                  class="quiet"
                  aria-label={`Ungroup ${one.name}`}
                  onClick={() => onMarks(dissolved(marks, at))}
                >
                  Ungroup
                </Button>
              </li>
            ))}
          </ul>
          <Edges
            result={result}
            marks={marks}
            edges={supernodeEdges(marks, ids, result.nodes, result.edges)}
          />
        </>
      )}
    </section>
  );
}

/** Saves the graph with its pinned nodes and supernodes. */
function SaveGraph({ onSave }: { onSave: () => Promise<void> }) {
  const { problem, trying } = useTrying();
  return (
    <>
      <Button onClick={() => void trying(onSave)}>Save graph as JSON</Button>
      <Problem sentence={problem} />
    </>
  );
}

/** A name that is changed when its field loses the focus, or on Enter. */
function Name({ name, at, onName }: { name: string; at: number; onName: (name: string) => void }) {
  const { problem, trying } = useTrying();
  return (
    <>
      <input
        type="text"
        aria-label={`Name of supernode ${at + 1}`}
        defaultValue={name}
        onChange={({ currentTarget }) => void trying(async () => onName(currentTarget.value))}
      />
      <Problem sentence={problem} />
    </>
  );
}

function Edges({ result, marks, edges }: { result: DrawnGraph; marks: GraphMarks; edges: SupernodeEdge[] }) {
  if (edges.length === 0) return <p class="soft">No edges between supernodes, or to a logit.</p>;
  const end = ({ target }: SupernodeEdge) =>
    "supernode" in target
      ? marks.supernodes[target.supernode]?.name
      : nodeName(result, result.nodes[target.node] as GraphNode);
  return (
    <ul aria-label="Edges between supernodes">
      {edges.slice(0, listed).map((edge) => (
        <li key={`${edge.source} ${JSON.stringify(edge.target)}`}>
          <bdi>{marks.supernodes[edge.source]?.name}</bdi> → <bdi>{end(edge)}</bdi>{" "}
          <span class="number">{signed(edge.value)}</span>
        </li>
      ))}
    </ul>
  );
}

function influenceOf(group: readonly string[], ids: readonly string[], nodes: readonly GraphNode[]): number {
  const members = new Set(group);
  return nodes.reduce((sum, { influence }, at) => (members.has(ids[at] ?? "") ? sum + influence : sum), 0);
}
