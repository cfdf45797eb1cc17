import { useState } from "preact/hooks";
import { bestLayer } from "../../../findings/probe.js";
import type { JobFindings } from "../jobs.js";
import type { CodeRequest } from "../scripts.js";
import { post } from "../session.js";
import { known } from "../store.js";
import { Choice, Field } from "./fields.js";
import { Form, useTrying } from "./form.js";
import { ScriptMenu } from "./request-code.js";

/** Saves the probe that a job has measured, at one of its layers, for the chat. */
export function SaveProbe({
  findings: { job },
  name: first,
}: {
  findings: JobFindings<"probe">;
  name: string;
}) {
  const { reports, point = "block_out" } = job.result;
  const [name, setName] = useState(first);
  const [layer, setLayer] = useState(() => bestLayer(reports).best.layer);
  const { problem, trying } = useTrying();
  if (point !== "block_out") {
    return <p class="soft">The chat reads block outputs only; this probe reads {point}.</p>;
  }
  const request = (): CodeRequest => ({
    service: "server",
    url: known.state?.server.url ?? "",
    path: `/lab/probes/${encodeURIComponent(name)}?layer=${layer}`,
    upload: { lab: known.state?.lab.url ?? "", job: job.id, file: `probe-layer-${layer}.npz` },
  });
  return (
    <section class="card" aria-label="Save this probe">
      <h2>Save this probe</h2>
      <Form
        class=""
        problem={problem}
        onSubmit={() => trying(() => post("/api/probes", { name, job: job.id, layer }))}
      >
        <p class="row">
          <Choice
            label="Layer"
            value={layer}
            options={reports.map((one) => [one.layer, `${one.layer} (AUROC ${one.auc.toFixed(3)})`] as const)}
            onChange={setLayer}
          />
          <Field label="Name" value={name} onChange={setName} />
          <button type="submit" disabled={known.state?.server.ok !== true || name === ""}>
            Save for chat
          </button>
        </p>
      </Form>
      <div class="row">
        <ScriptMenu of="save probe" request={request} />
      </div>
    </section>
  );
}
