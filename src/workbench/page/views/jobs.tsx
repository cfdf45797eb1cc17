import { useState } from "preact/hooks";
import type { Job } from "../../../contracts/index.js";
import { submit } from "../jobs.js";
import { go, usePlace } from "../router.js";
import { call } from "../session.js";
import { known, useTopic } from "../store.js";
import { Area } from "./fields.js";
import { Button, Problem, useTrying } from "./form.js";
import { JobGraph } from "./graph-picture.js";
import { JobHeading, JobList } from "./job-list.js";
import { JobResult } from "./job-result.js";

/** The Lab's jobs, and one or two of them in full. */
export function JobsView({ id }: { id: string | undefined }) {
  useTopic("state");
  const { query } = usePlace();
  const jobs = known.state?.jobs ?? [];
  const other = query.get("with") ?? undefined;
  const draft = (
    <p>
      <Button onClick={() => go(`/session?study=${id ?? ""}`)}>Draft a study</Button>
    </p>
  );
  return (
    <div class="page wide">
      <h1>Jobs</h1>
      {id !== undefined && (
        <>
          <div class={other === undefined ? "" : "twins"}>
            <OneJob id={id} beside={other !== undefined} />
            {other !== undefined && <OneJob id={other} beside />}
          </div>
          {draft}
          <h2>All jobs</h2>
        </>
      )}
      {jobs.length === 0 ? (
        <p class="soft">No jobs yet. Run an experiment in any view or from the terminal.</p>
      ) : (
        <JobList shown={id} />
      )}
      {id === undefined && jobs.length > 0 && draft}
    </div>
  );
}

function OneJob({ id, beside }: { id: string; beside: boolean }) {
  const of = beside ? ` of ${id.slice(0, 8)}` : "";
  return (
    <section class="one-job" aria-label={`Job ${id.slice(0, 8)}`}>
      <JobHeading key={id} id={id} />
      <Repeat key={`repeat ${id}`} id={id} />
      <JobResult id={id} operation="graph" of={of}>
        {({ job }) => <JobGraph job={job} of={of} />}
      </JobResult>
    </section>
  );
}

/** Edits the configuration of a job, even of a failed one, and submits it again. */
function Repeat({ id }: { id: string }) {
  const { problem, trying } = useTrying();
  const [text, setText] = useState<string>();
  const read = () =>
    trying(async () => {
      const { config } = await call<Pick<Job, "config">>(`/api/jobs/${encodeURIComponent(id)}`);
      setText((typed) => typed ?? JSON.stringify(config, null, 2));
    });
  return (
    <details
      class="card"
      onToggle={(event) => {
        if (event.currentTarget.open && text === undefined) void read();
      }}
    >
      <summary>Repeat with changes</summary>
      {text !== undefined && (
        <>
          <Area label="Configuration" rows={12} class="mono" value={text} onChange={setText} />
          <Button
            class="main"
            onClick={() => void trying(async ({ go }) => go(`/jobs/${await submit(settingsOf(text))}`))}
          >
            Run
          </Button>
        </>
      )}
      <Problem sentence={problem} />
    </details>
  );
}

/** @throws Error for invalid JSON */
function settingsOf(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    throw new Error("Invalid JSON.");
  }
}
