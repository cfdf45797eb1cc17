import type { ComponentChildren } from "preact";
import type { Figure } from "../../../report/figure.js";
import { type JobFindings, useFindings, useJobSummary } from "../jobs.js";
import { follow, select } from "../router.js";
import { call, open } from "../session.js";
import { known } from "../store.js";
import { FigureView } from "./figure.js";
import { Problem } from "./form.js";
import { RequestCode } from "./request-code.js";

/** What a click on a figure's row does. */
export interface Pick {
  /** Its id, or how that begins. */
  figure: string;
  words: string;
  act: (findings: JobFindings, row: number, figure: Figure) => void;
}

interface JobResultProps {
  id: string;
  pick?: Pick | Pick[];
  /** Which of its figures are drawn; all unless told otherwise. */
  shows?: (figure: string) => boolean;
  /** What is shown under its progress while it runs. */
  meanwhile?: ComponentChildren;
  children?: (findings: JobFindings) => ComponentChildren;
  /** What stands behind the figures. */
  below?: (findings: JobFindings) => ComponentChildren;
}

/** Takes the pick of a row out of the address. */
export function LetGo() {
  return (
    <button type="button" class="quiet" onClick={() => select({ l: undefined, t: undefined })}>
      Let go
    </button>
  );
}

/** A job: how far it is, then what it found. */
export function JobResult({ id, pick, shows = () => true, meanwhile, children, below }: JobResultProps) {
  const summary = useJobSummary(id);
  const findings = useFindings(id);
  if (typeof findings === "string") {
    return <Problem sentence={findings} />;
  }
  if (findings === undefined) {
    if (summary === undefined) return <p class="soft">This job is being read.</p>;
    const ended = summary.status !== "running" && summary.status !== "queued";
    return (
      <>
        <section class="card" aria-label="Progress">
          {ended ? (
            <Problem sentence={summary.error ?? `The job was ${summary.status}.`} />
          ) : (
            <JobProgress id={id} />
          )}
        </section>
        {!ended && meanwhile}
      </>
    );
  }
  const { job, cautions, figures } = findings;
  const name = `tapline-${job.operation}-${job.id.slice(0, 8)}`;
  return (
    <div class="result">
      <section class="lead" aria-label="Result">
        {findings.summary.map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
      </section>
      {children?.(findings)}
      {figures
        .filter(({ id }) => shows(id))
        .map((figure) => {
          const picked = [pick ?? []].flat().find((one) => figure.id.startsWith(one.figure));
          return (
            <FigureView
              key={`${job.id} ${figure.id}`}
              figure={figure}
              name={name}
              {...(picked !== undefined && {
                picks: picked.words,
                onPick: (row: number) => picked.act(findings, row, figure),
              })}
            />
          );
        })}
      {below?.(findings)}
      <aside class="notice" aria-label="What this does not show">
        <strong>What this does not show</strong>
        {cautions.map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
      </aside>
      <JobFiles findings={findings} />
      <RequestCode
        request={{
          service: "lab",
          url: known.state?.lab.url ?? "",
          path: "/lab/v1/jobs",
          body: job.config as unknown as Record<string, unknown>,
        }}
      />
    </div>
  );
}

export function JobProgress({ id }: { id: string }) {
  const summary = useJobSummary(id);
  if (summary === undefined) return null;
  const { stage, done, total } = summary.progress;
  return (
    <div class="row">
      <span>{summary.status === "queued" ? "waiting for its turn" : stage}</span>
      {total > 0 ? (
        <>
          <progress value={done} max={total} aria-label={stage} />
          <span class="number">
            {done} of {total}
          </span>
        </>
      ) : (
        <progress aria-label={stage} />
      )}
      <button
        type="button"
        onClick={() => void call(`/api/jobs/${id}/cancel`, { method: "POST" }).catch(() => {})}
      >
        Cancel
      </button>
    </div>
  );
}

/** What of a job can be kept as files. */
function JobFiles({ findings: { job, passages } }: { findings: JobFindings }) {
  const keep = async (path: string, name: string) => {
    const [response, { download }] = await Promise.all([open(path), import("../pictures.js")]);
    download(name, await response.blob());
  };
  const short = job.id.slice(0, 8);
  return (
    <section class="card" aria-label="Files">
      <h2>Files</h2>
      <p class="row">
        <button
          type="button"
          onClick={() => void keep(`/api/jobs/${job.id}/report`, `tapline-${job.operation}-${short}.html`)}
        >
          Report as one HTML file
        </button>
        <button
          type="button"
          onClick={() => void keep(`/api/jobs/${job.id}`, `tapline-${job.operation}-${short}.json`)}
        >
          Job as JSON
        </button>
        {(job.result?.artifacts ?? []).map((name) => (
          <button
            key={name}
            type="button"
            onClick={() => void keep(`/api/jobs/${job.id}/artifacts/${encodeURIComponent(name)}`, name)}
          >
            <bdi>{name}</bdi>
          </button>
        ))}
      </p>
      {passages.length > 0 && (
        <p class="soft">
          The report also has: {passages.map(({ title }) => title.toLowerCase()).join(", ")}.
        </p>
      )}
      <p class="soft">
        Job <code>{job.id}</code>.{" "}
        <a href={`/jobs/${job.id}`} onClick={follow}>
          Its own address
        </a>
      </p>
    </section>
  );
}
