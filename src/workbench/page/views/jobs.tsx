import { useState } from "preact/hooks";
import type { JobSummary } from "../../../contracts/index.js";
import { duration } from "../../../terminal/spans.js";
import { submit } from "../jobs.js";
import { follow, go, usePlace } from "../router.js";
import { call } from "../session.js";
import { known, useTopic } from "../store.js";
import { Problem, useTrying } from "./form.js";
import { JobProgress, JobResult } from "./job-result.js";

/** The Lab's experiments: what runs, what ran, and one or two of them in full. */
export function JobsView({ id }: { id: string | undefined }) {
  useTopic("state");
  const { query } = usePlace();
  const jobs = known.state?.jobs ?? [];
  const other = query.get("with") ?? undefined;
  return (
    <div class="page wide">
      <h1>Jobs</h1>
      {jobs.length === 0 ? (
        <p class="soft">None yet. Inspect, Patch and the terminal's experiments make them.</p>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="All jobs">
          <table>
            <thead>
              <tr>
                <th scope="col">job</th>
                <th scope="col">experiment</th>
                <th scope="col">model</th>
                <th scope="col">submitted</th>
                <th scope="col">state</th>
                <th scope="col">
                  <span class="visually-hidden">actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {jobs.map((job) => (
                <JobRow key={job.id} job={job} shown={id} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {id !== undefined && (
        <div class={other === undefined ? "" : "twins"}>
          <OneJob id={id} />
          {other !== undefined && <OneJob id={other} />}
        </div>
      )}
    </div>
  );
}

function OneJob({ id }: { id: string }) {
  const { problem, trying } = useTrying();
  const [text, setText] = useState<string>();
  const repeat = (settings: string) => trying(async () => go(`/jobs/${await submit(settingsOf(settings))}`));
  return (
    <section class="one-job" aria-label={`Job ${id.slice(0, 8)}`}>
      <JobResult id={id}>
        {({ job }) => (
          <details class="card">
            <summary>Repeat with changes</summary>
            <label class="field">
              Settings
              <textarea
                rows={12}
                class="mono"
                value={text ?? JSON.stringify(job.config, null, 2)}
                onInput={(event) => setText(event.currentTarget.value)}
              />
            </label>
            <button
              type="button"
              class="main"
              onClick={() => void repeat(text ?? JSON.stringify(job.config))}
            >
              Run
            </button>
            <Problem sentence={problem} />
          </details>
        )}
      </JobResult>
    </section>
  );
}

/** @throws Error where a text is not JSON */
function settingsOf(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    throw new Error("This is not JSON.");
  }
}

function JobRow({ job, shown }: { job: JobSummary; shown: string | undefined }) {
  const going = job.status === "running" || job.status === "queued";
  const short = job.id.slice(0, 8);
  const again = async () => {
    const { config } = await call<{ config: Record<string, unknown> }>(`/api/jobs/${job.id}`);
    go(`/jobs/${await submit(config)}`);
  };
  return (
    <tr aria-current={job.id === shown ? "true" : undefined}>
      <th scope="row">
        <a href={`/jobs/${job.id}`} onClick={follow}>
          <code>{short}</code>
        </a>
      </th>
      <td>{job.operation}</td>
      <td>
        <bdi>{job.model.split(/[/\\]/).at(-1)}</bdi>
      </td>
      <td>{new Date(job.created * 1000).toLocaleString()}</td>
      <td>
        {going ? (
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
        {!going && (
          <span class="row">
            <button
              type="button"
              class="quiet"
              aria-label={`Repeat job ${short}`}
              onClick={() => void again().catch(() => {})}
            >
              Repeat
            </button>
            {shown !== undefined && shown !== job.id && (
              <a
                href={`/jobs/${shown}?with=${job.id}`}
                onClick={follow}
                aria-label={`Compare with job ${short}`}
              >
                Compare
              </a>
            )}
          </span>
        )}
      </td>
    </tr>
  );
}
