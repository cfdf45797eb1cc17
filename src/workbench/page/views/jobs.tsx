import { useState } from "preact/hooks";
import type { Job, JobSummary } from "../../../contracts/index.js";
import { duration } from "../../../terminal/spans.js";
import { isActive, submit } from "../jobs.js";
import { follow, select, usePlace } from "../router.js";
import { call } from "../session.js";
import { known, useTopic } from "../store.js";
import { jobPath, studyJobs, withJob } from "../study.js";
import { Area } from "./fields.js";
import { Button, Problem, useTrying } from "./form.js";
import { JobProgress, JobResult } from "./job-result.js";
import { StudyDraftCard } from "./study-draft.js";
import { Table } from "./table.js";

const titles = ["Job", "Experiment", "Model", "Submitted", "Status", { hidden: "actions" }];

/** The Lab's jobs, and one or two of them in full. */
export function JobsView({ id }: { id: string | undefined }) {
  useTopic("state");
  const { query } = usePlace();
  const jobs = known.state?.jobs ?? [];
  const other = query.get("with") ?? undefined;
  const study = studyJobs(query);
  return (
    <div class="page wide">
      <h1>Jobs</h1>
      {jobs.length === 0 ? (
        <p class="soft">No jobs yet. Run an experiment in any view or from the terminal.</p>
      ) : (
        <Table label="All jobs" titles={titles}>
          {jobs.map((job) => (
            <JobRow key={job.id} job={job} shown={id} study={study} />
          ))}
        </Table>
      )}
      {study !== undefined ? (
        <StudyDraftCard jobs={study} />
      ) : (
        jobs.length > 0 && (
          <p>
            <Button onClick={() => select({ study: id ?? "" })}>Draft a study</Button>
          </p>
        )
      )}
      {id !== undefined && (
        <div class={other === undefined ? "" : "twins"}>
          <OneJob id={id} beside={other !== undefined} />
          {other !== undefined && <OneJob id={other} beside />}
        </div>
      )}
    </div>
  );
}

function OneJob({ id, beside }: { id: string; beside: boolean }) {
  return (
    <section class="one-job" aria-label={`Job ${id.slice(0, 8)}`}>
      <Repeat key={id} id={id} />
      <JobResult id={id} {...(beside && { of: ` of ${id.slice(0, 8)}` })} />
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

function JobRow({
  job,
  shown,
  study,
}: {
  job: JobSummary;
  shown: string | undefined;
  study: string[] | undefined;
}) {
  const { problem, trying } = useTrying();
  const active = isActive(job.status);
  const short = job.id.slice(0, 8);
  const again = () =>
    trying(async ({ go }) => {
      const { config } = await call<{ config: Record<string, unknown> }>(`/api/jobs/${job.id}`);
      go(`/jobs/${await submit(config)}`);
    });
  return (
    <tr aria-current={job.id === shown ? "true" : undefined}>
      <th scope="row">
        <a href={jobPath(job.id, { study })} onClick={follow}>
          <code>{short}</code>
        </a>
      </th>
      <td>{job.operation}</td>
      <td>
        <bdi>{job.model.split(/[/\\]/).at(-1)}</bdi>
      </td>
      <td>{new Date(job.created * 1000).toLocaleString()}</td>
      <td>
        {active ? (
          <JobProgress id={job.id} />
        ) : (
          <>
            {job.status}
            {job.started !== null && job.ended !== null && (
              <span class="soft"> in {duration(job.ended - job.started)}</span>
            )}
            {job.error !== undefined && <p class="problem">{job.error}</p>}
          </>
        )}
      </td>
      <td>
        {!active && (
          <span class="row">
            {study !== undefined && (
              <label class="check">
                <input
                  type="checkbox"
                  aria-label={`Include job ${short} in the study`}
                  checked={study.includes(job.id)}
                  onChange={(event) => select({ study: withJob(study, job.id, event.currentTarget.checked) })}
                />
                Study
              </label>
            )}
            <Button class="quiet" aria-label={`Repeat job ${short}`} onClick={() => void again()}>
              Repeat
            </Button>
            {shown !== undefined && shown !== job.id && (
              <a
                href={jobPath(shown, { beside: job.id, study })}
                onClick={follow}
                aria-label={`Compare with job ${short}`}
              >
                Compare
              </a>
            )}
            <Problem sentence={problem} />
          </span>
        )}
      </td>
    </tr>
  );
}
