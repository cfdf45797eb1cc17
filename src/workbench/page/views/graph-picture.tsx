import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { nodeName, raisedText } from "../../../findings/graph.js";
import { nodeId } from "../../../findings/graph-ids.js";
import { graphLayout, markLegend, pageMost } from "../../../findings/graph-layout.js";
import { labelKey } from "../../../findings/label-finding.js";
import { useLabels } from "../feature-labels.js";
import type { DrawnGraph, DrawnNode, GraphFile } from "../graph-file.js";
import { type GraphMarks, supernodeOf, toggled, withMarks } from "../graph-marks.js";
import type { JobFindings } from "../jobs.js";
import { savedMarks, saveMarks } from "../saved-marks.js";
import { open } from "../session.js";
import { type DrawnMark, GraphDrawing, nextDot } from "./graph-drawing.js";
import { NodeDetails, nameOf } from "./graph-node.js";
import { SteerFromNode } from "./graph-steer.js";
import { Supernodes } from "./graph-supernodes.js";
import { type SaveKind, SaveTools, saveText } from "./picture.js";

interface GraphPictureProps {
  result: DrawnGraph;
  /** By node. */
  ids: readonly string[];
  /** Pinned nodes and supernodes. */
  marks: GraphMarks;
  onMarks: (marks: GraphMarks) => void;
  /** The text of its file for circuit-tracer. */
  file: () => Promise<string>;
  /** Of saved files, without extension. */
  name: string;
  /** Suffix of its labels, if the page has two graphs. */
  of?: string;
  /** Nodes that the compared graph does not have. */
  only?: readonly number[];
  /** What is offered for the pinned node. */
  actions?: (node: DrawnNode) => ComponentChildren;
}

/** The graph of a job. */
export function JobGraph({
  job,
  of = "",
  only,
}: {
  job: JobFindings<"graph">["job"];
  of?: string;
  only?: readonly number[];
}) {
  const { id, result } = job;
  const labels = useLabels();
  const ids = useMemo(() => result.nodes.map((node) => nodeId(result, node)), [result]);
  const [marks, setMarks] = useState(() => savedMarks(id, ids));
  const labelled = useMemo(() => {
    const dictionaries = new Map(result.transcoders?.blocks.map(({ layer, sha256 }) => [layer, sha256]));
    const nodes = result.nodes.map((node): DrawnNode => {
      const sha256 = node.kind === "feature" ? dictionaries.get(node.layer ?? -1) : undefined;
      const found = sha256 === undefined ? undefined : labels[labelKey(sha256, node.index ?? -1)];
      const label = found?.label ?? raisedText(result.features, node);
      return label === undefined ? node : { ...node, label: `${nodeName(result, node)}, ${label}` };
    });
    return { ...result, nodes };
  }, [result, labels]);
  return (
    <GraphPicture
      key={id}
      result={labelled}
      ids={ids}
      marks={marks}
      onMarks={(next) => {
        setMarks(next);
        saveMarks(id, next);
      }}
      file={async () => (await open(`/api/jobs/${id}/artifacts/graph.json`)).text()}
      name={`tapline-graph-${id.slice(0, 8)}-graph`}
      of={of}
      {...(only && { only })}
      actions={(node) => <SteerFromNode job={job} node={node} />}
    />
  );
}

/** The graph of a file. */
export function FileGraph({ graph, of, only }: { graph: GraphFile; of: string; only?: readonly number[] }) {
  const [marks, setMarks] = useState(graph.marks);
  return (
    <GraphPicture
      result={graph}
      ids={graph.ids}
      marks={marks}
      onMarks={setMarks}
      file={() => Promise.resolve(graph.text)}
      name="tapline-graph-file"
      of={of}
      {...(only && { only })}
    />
  );
}

/**
 * An attribution graph. Pointing at a node, or moving to it with the arrow keys, shows its strongest parents and children; a
 * click or Enter selects it, and Shift-click or S pins it for a supernode.
 */
export function GraphPicture(props: GraphPictureProps) {
  const { result, ids, marks, onMarks, file, name, of = "", only, actions } = props;
  const layout = useMemo(() => graphLayout(result, pageMost), [result.nodes.length, result.edges]);
  const strongest = layout.dots.findIndex(({ node }) => node.kind === "target");
  const [pointed, setPointed] = useState<number>();
  const [selected, setSelected] = useState<number>();
  const [current, setCurrent] = useState(Math.max(0, strongest));
  const drawing = useRef<HTMLDivElement>(null);
  const shown = pointed ?? selected;
  const choose = (index: number) => setSelected((before) => (before === index ? undefined : index));
  const toggle = (index: number) => onMarks(toggled(marks, ids[index] as string));
  const drawn = useMemo(() => drawnMarks(ids, marks, only), [ids, marks, only]);
  const title = `Attribution graph${of}`;
  const save = async (kind: SaveKind) => {
    const { saveElement, saveTable } = await import("../pictures.js");
    if (kind !== "csv") return saveElement(kind, name, title, drawing.current as HTMLElement);
    saveTable(name, columns, rowsOf(result));
  };
  const legend = markLegend(result.nodes);
  return (
    <section class="card picture graph" aria-label={title}>
      <h2>Attribution graph</h2>
      <SaveTools title={title} save={save} />
      <p class="soft">
        Tokens from left to right, blocks upwards{legend === "" ? "" : `; ${legend}`}. Point at a node to see
        its strongest parents and children; click to select it. Shift-click or S pins nodes, which can be
        grouped.
      </p>
      <div
        class="scroll"
        role="group"
        aria-label={`Picture of the graph${of}; scrolls sideways`}
        tabIndex={0}
      >
        <div class="whole" ref={drawing}>
          <GraphDrawing
            layout={layout}
            label={`Nodes of the graph${of}; arrow keys move between them, Enter selects one, S pins it`}
            shown={shown}
            marks={drawn}
            onPoint={setPointed}
            onPick={(at, adds) => {
              const { index } = layout.dots[at] as { index: number };
              setCurrent(at);
              if (adds) toggle(index);
              else choose(index);
            }}
            onFocus={() => setPointed(layout.dots[current]?.index)}
            onKey={(key) => {
              const dot = layout.dots[current];
              if (dot === undefined) return false;
              if (key === "Enter" || key === " ") choose(dot.index);
              else if (key === "Escape") setSelected(undefined);
              else if (key === "s" || key === "S") toggle(dot.index);
              else {
                const next = nextDot(layout.dots, current, key);
                if (next === undefined) return false;
                setCurrent(next);
                setPointed(layout.dots[next]?.index);
              }
              return true;
            }}
          />
        </div>
      </div>
      <div aria-live="polite">
        {shown === undefined ? (
          <p class="soft">No node selected.</p>
        ) : (
          <NodeDetails
            result={result}
            index={shown}
            isSelected={selected === shown}
            clear={() => setSelected(undefined)}
            isPinned={drawn.has(shown) && drawn.get(shown)?.kind !== "only"}
            onPin={() => toggle(shown)}
            actions={actions}
          />
        )}
      </div>
      <Supernodes
        result={result}
        ids={ids}
        marks={marks}
        onMarks={onMarks}
        of={of}
        onSave={async () => saveText(`${name}.json`, "application/json", withMarks(await file(), marks))}
      />
    </section>
  );
}

function drawnMarks(
  ids: readonly string[],
  marks: GraphMarks,
  only: readonly number[] | undefined,
): Map<number, DrawnMark> {
  const drawn = new Map<number, DrawnMark>((only ?? []).map((at) => [at, { kind: "only" }]));
  const pinned = new Set(marks.pinned);
  for (const [at, id] of ids.entries()) {
    const group = supernodeOf(marks, id);
    if (group !== undefined) drawn.set(at, { kind: "grouped", text: `${group + 1}` });
    else if (pinned.has(id)) drawn.set(at, { kind: "pinned" });
  }
  return drawn;
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
