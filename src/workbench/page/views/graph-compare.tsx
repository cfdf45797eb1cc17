import { useMemo } from "preact/hooks";
import { comparedNodes, pairNodes, pairsSentence } from "../../../findings/graph-difference.js";
import { percent } from "../../../findings/numbers.js";
import { titleOfJob } from "../job-list.js";
import { type JobFindings, useFindings } from "../jobs.js";
import { go } from "../router.js";
import { known, useTopic } from "../store.js";
import { Choice } from "./fields.js";
import { Button, Problem } from "./form.js";
import { nameOf } from "./graph-node.js";
import { JobGraph } from "./graph-picture.js";
import { Table } from "./table.js";

type GraphJob = JobFindings<"graph">["job"];

/** Listed nodes of two graphs. */
const listed = 30;

/** Chooses a second graph: of another prompt, or of another form of the model. */
export function ChooseGraph({ id, other }: { id: string; other: string | undefined }) {
  useTopic("state");
  const graphs = (known.state?.jobs ?? []).filter(
    (job) => job.operation === "graph" && job.status === "completed" && job.id !== id,
  );
  const notes = known.state?.notes ?? {};
  const named = graphs.map(
    (job) => [job.id, `${titleOfJob(job, notes[job.id])} (${job.id.slice(0, 8)})`] as const,
  );
  const open = (chosen: string) => go(chosen === "" ? `/graph/${id}` : `/graph/${id}?with=${chosen}`);
  if (graphs.length === 0) return <p class="soft">Compute another graph to compare the two.</p>;
  return (
    <p class="row">
      <Choice
        label="Compare with"
        value={other ?? ""}
        options={[["", "no other graph"] as const, ...named]}
        onChange={open}
      />
      {other !== undefined && (
        <Button class="quiet" onClick={() => open("")}>
          Close comparison
        </Button>
      )}
    </p>
  );
}

/** A graph and, next to it, another one: nodes in both, nodes in one, and influence in each. */
export function ComparedGraphs({ job, other }: { job: GraphJob; other: string | undefined }) {
  if (other === undefined) return <JobGraph job={job} />;
  return <WithOther key={other} job={job} other={other} />;
}

function WithOther({ job, other }: { job: GraphJob; other: string }) {
  const findings = useFindings(other);
  if (typeof findings === "string") {
    return (
      <>
        <Problem sentence={findings} />
        <JobGraph job={job} />
      </>
    );
  }
  if (findings === undefined || findings.job.operation !== "graph") {
    return (
      <>
        <p class="soft">
          {findings === undefined ? "Loading the other graph…" : "The other job is not a graph."}
        </p>
        <JobGraph job={job} />
      </>
    );
  }
  return <Both one={job} other={findings.job as GraphJob} />;
}

function Both({ one, other }: { one: GraphJob; other: GraphJob }) {
  const pairs = useMemo(() => pairNodes(one.result, other.result), [one.result, other.result]);
  const rows = useMemo(() => comparedNodes(one.result, other.result, pairs), [pairs]);
  const name = (at: number | null, graph: GraphJob["result"]) => {
    const node = at === null ? undefined : graph.nodes[at];
    return node === undefined ? undefined : nameOf(graph, node);
  };
  const cell = (value: number | null) => (value === null ? "–" : percent(value));
  return (
    <>
      <section class="card" aria-label="Both graphs">
        <h2>Both graphs</h2>
        <p>{pairsSentence(one.result, other.result, pairs)}</p>
        <p class="soft">
          First: “<bdi>{one.config.prompt}</bdi>”, {one.result.provenance.quantization}. Second: “
          <bdi>{other.config.prompt}</bdi>”, {other.result.provenance.quantization}. Dotted rings mark nodes
          that only one graph has.
        </p>
        <Table
          label="Nodes by the difference of their influence"
          titles={["node", { number: "first" }, { number: "second" }]}
        >
          {rows.slice(0, listed).map((row) => (
            <tr key={`${row.one} ${row.other}`}>
              <th scope="row">
                <bdi>{name(row.one, one.result) ?? name(row.other, other.result)}</bdi>
              </th>
              {row.influence.map((value, side) => (
                <td key={side} class="number">
                  {cell(value)}
                </td>
              ))}
            </tr>
          ))}
        </Table>
      </section>
      <div class="twins">
        <JobGraph job={one} of=" (first)" only={pairs.onlyOne} />
        <JobGraph job={other} of=" (second)" only={pairs.onlyOther} />
      </div>
    </>
  );
}
