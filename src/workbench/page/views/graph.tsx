import { useState } from "preact/hooks";
import { limits } from "../../../contracts/limits.js";
import { count } from "../../../findings/numbers.js";
import { type GraphFile, readGraphFile } from "../graph-file.js";
import { type GraphForm, graphForm, graphFormOf, graphRequest } from "../graph-request.js";
import { jobRequest, labModel, submit, useConfig } from "../jobs.js";
import { usePlace } from "../router.js";
import { known, useTopic } from "../store.js";
import { Area, Check, Field, NumberField } from "./fields.js";
import { Fold } from "./fold.js";
import { Button, Form, Problem, useFields, useTrying } from "./form.js";
import { ChooseGraph, ComparedGraphs } from "./graph-compare.js";
import { FileGraph } from "./graph-picture.js";
import { JobResult } from "./job-result.js";
import { ScriptMenu } from "./request-code.js";

/** Maximum size of a graph file, in bytes. */
const mostBytes = 200_000_000;

interface NamedFile {
  name: string;
  /** Different each time that a file is opened. */
  opened: number;
  graph: GraphFile;
}

/** The neurons and heads that a token's logit comes from. */
export function GraphView({ id }: { id: string | undefined }) {
  useTopic("state");
  const other = usePlace().query.get("with") ?? undefined;
  const { fields: form, set, bind } = useFields<GraphForm>(() => graphForm);
  const { problem, trying } = useTrying();
  const [file, setFile] = useState<NamedFile>();
  useConfig("graph", id, (config) => set(graphFormOf(config)));
  const job = () => ({ model: labModel(), ...graphRequest(form) });
  const run = () => trying(async ({ go }) => go(`/graph/${await submit(job())}`));
  return (
    <div class="page">
      <h1>Graph</h1>
      <Fold hasResult={id !== undefined}>
        <p class="soft">
          Attribution graph: the neurons and attention heads, or features of transcoders, that a token's logit
          comes from, and how they affect each other. Attention, norms and gates stay as they are in one pass;
          the strongest nodes are also removed for real.
        </p>
        <Form onSubmit={run} problem={problem}>
          <Area label="Prompt" rows={2} {...bind("prompt")} />
          <p class="row">
            <Field label="Target token" placeholder="the most probable tokens" {...bind("target")} />
            <Field label="Foil token" placeholder="the mean logit" {...bind("foil")} />
            <Field label="Transcoders" placeholder="none: neurons and heads" {...bind("transcoders")} />
            <NumberField
              label="After token"
              min={-limits.token_index}
              max={limits.token_index}
              {...bind("position")}
            />
          </p>
          <div class="row">
            <NumberField
              label="Nodes"
              min={limits.graph_nodes_min}
              max={limits.graph_nodes}
              {...bind("nodes")}
            />
            <NumberField label="Node threshold" min={0} max={1} step={0.01} {...bind("nodeThreshold")} />
            <NumberField label="Edge threshold" min={0} max={1} step={0.01} {...bind("edgeThreshold")} />
            <NumberField label="Removals" min={0} max={limits.graph_measured} {...bind("measured")} />
            <Check checked={form.firstToken} onChange={(firstToken) => set({ firstToken })}>
              Nodes at the first token
            </Check>
            <button
              type="submit"
              class="main"
              disabled={known.state?.lab.ok !== true || form.prompt.trim() === ""}
            >
              Compute graph
            </button>
            <ScriptMenu of="compute graph" request={() => jobRequest(job())} />
          </div>
        </Form>
        <OpenFile onOpen={setFile} />
      </Fold>
      {file !== undefined && <ShownFile {...file} onClose={() => setFile(undefined)} />}
      {id !== undefined && (
        <>
          <ChooseGraph id={id} other={other} />
          <JobResult id={id} operation="graph">
            {({ job }) => <ComparedGraphs job={job} other={other} />}
          </JobResult>
        </>
      )}
    </div>
  );
}

/** Opens a graph that was saved here or computed elsewhere. */
function OpenFile({ onOpen }: { onOpen: (file: NamedFile) => void }) {
  const { problem, trying } = useTrying();
  const open = (file: File | undefined) =>
    trying(async () => {
      if (file === undefined) return;
      if (file.size > mostBytes)
        throw new Error(`${file.name}: at most ${mostBytes} bytes, got ${file.size}.`);
      const graph = readGraphFile(file.name, await file.text());
      onOpen({ name: file.name, opened: performance.now(), graph });
    });
  return (
    <div class="card">
      <label>
        Graph file{" "}
        <input
          type="file"
          accept=".json"
          onChange={({ currentTarget }) => {
            void open(currentTarget.files?.[0]);
            currentTarget.value = "";
          }}
        />
      </label>{" "}
      <span class="soft">
        <code>graph.json</code> of tapline, or a graph of circuit-tracer
      </span>
      <Problem sentence={problem} />
    </div>
  );
}

function ShownFile({ name, opened, graph, onClose }: NamedFile & { onClose: () => void }) {
  return (
    <section aria-label={`File ${name}`}>
      <p class="row">
        <span>
          <bdi>{name}</bdi>: “<bdi>{graph.prompt}</bdi>”, {count(graph.nodes.length, "node")} and{" "}
          {count(graph.edges.length, "edge")}
        </span>
        <Button class="quiet" onClick={onClose}>
          Close file
        </Button>
      </p>
      <FileGraph key={opened} graph={graph} of={` of ${name}`} />
    </section>
  );
}
