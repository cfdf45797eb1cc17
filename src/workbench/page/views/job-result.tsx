import type { ComponentChildren } from "preact";
import type { Operation } from "../../../contracts/index.js";
import type { Figure } from "../../../findings/figure.js";
import { stageWords } from "../../../terminal/job-progress.js";
import { extent, timeLeft, waiting } from "../job-time.js";
import { isGoing, type JobFindings, jobRequest, useFindings, useJobSummary } from "../jobs.js";
import { follow, select } from "../router.js";
import type { CodeRequest } from "../scripts.js";
import { open, post } from "../session.js";
import { known } from "../store.js";
import { CommandCode } from "./command-code.js";
import { FigureView } from "./figure.js";
import { Button, Problem, useTrying } from "./form.js";
import { RequestCode } from "./request-code.js";

/** What a click on a figure's row does. */
export interface Pick<O extends Operation> {
  /** Its id, or how that begins. */
  figure: string;
  words: string;
  act: (findings: JobFindings<O>, row: number, figure: Figure) => void;
}

interface JobResultProps<O extends Operation> {
  id: string;
  /** What the view that shows it is of: the parts below are those of no other job. */
  operation?: O;
  /** Ends the names of its parts, where another job stands beside it. */
  of?: string;
  pick?: Pick<O>[];
  /** Which of its figures are drawn; all unless told otherwise. */
  shows?: (figure: string) => boolean;
  /** What is shown under its progress while it runs. */
  meanwhile?: ComponentChildren;
  children?: (findings: JobFindings<O>) => ComponentChildren;
  /** What stands behind the figures. */
  below?: (findings: JobFindings<O>) => ComponentChildren;
}

/** Takes what names a picked row out of the address. */
export function LetGo({ of }: { of: string[] }) {
  const nothing = Object.fromEntries(of.map((name) => [name, undefined]));
  return (
    <Button class="quiet" onClick={() => select(nothing)}>
      Let go
    </Button>
  );
}

/** A job: how far it is, then what it found. */
export function JobResult<O extends Operation>({
  id,
  operation,
  of = "",
  pick = [],
  shows = () => true,
  meanwhile,
  children,
  below,
}: JobResultProps<O>) {
  const summary = useJobSummary(id);
  const findings = useFindings(id);
  if (typeof findings === "string") {
    return <Problem sentence={findings} />;
  }
  if (findings === undefined) {
    if (summary === undefined) return <p class="soft">This job is being read.</p>;
    const ended = !isGoing(summary.status);
    return (
      <>
        <section class="card" aria-label={`Progress${of}`}>
          {ended ? (
            <Problem sentence={summary.error ?? `The job was ${summary.status}.`} />
          ) : (
            <>
              <JobProgress id={id} />
              <RequestCode of="cancel it" request={{ ...labJob(id, "/cancel"), body: {} }} />
            </>
          )}
        </section>
        {!ended && meanwhile}
      </>
    );
  }
  const { job, cautions, figures } = findings;
  const own = job.operation === operation ? (findings as JobFindings<O>) : undefined;
  const name = `tapline-${job.operation}-${job.id.slice(0, 8)}`;
  return (
    <div class="result">
      <section class="lead" aria-label={`Result${of}`}>
        {findings.summary.map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
      </section>
      {own !== undefined && children?.(own)}
      {figures
        .filter(({ id }) => shows(id))
        .map((figure) => {
          const picked = pick.find((one) => figure.id.startsWith(one.figure));
          return (
            <FigureView
              key={`${job.id} ${figure.id}`}
              figure={figure}
              name={name}
              {...(own !== undefined &&
                picked !== undefined && {
                  picks: picked.words,
                  onPick: (row: number) => picked.act(own, row, figure),
                })}
            />
          );
        })}
      {own !== undefined && below?.(own)}
      <aside class="notice" aria-label={`What this does not show${of}`}>
        <strong>What this does not show</strong>
        {cautions.map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
      </aside>
      <JobFiles findings={findings} of={of} />
      <RequestCode request={jobRequest(job.config)} />
    </div>
  );
}

/** How far a job is, and what is left of it as far as the Lab's figures tell. */
export function JobProgress({ id }: { id: string }) {
  const summary = useJobSummary(id);
  const { problem, trying } = useTrying();
  if (summary === undefined) return null;
  const { stage, done, total } = summary.progress;
  const words = stageWords(stage);
  return (
    <div class="row">
      <span>{summary.status === "queued" ? waiting(known.state?.jobs ?? [], summary) : words}</span>
      {total > 0 ? (
        <>
          <progress value={done} max={total} aria-label={words} />
          <span class="number">{extent(done, total)}</span>
        </>
      ) : (
        <progress aria-label={words} />
      )}
      <span class="soft">{timeLeft(summary)}</span>
      <Button
        aria-label={`Cancel job ${id.slice(0, 8)}`}
        onClick={() => void trying(() => post(`/api/jobs/${id}/cancel`))}
      >
        Cancel
      </Button>
      <Problem sentence={problem} />
    </div>
  );
}

/** Something of a job, asked of the Lab. */
function labJob(id: string, part = ""): CodeRequest {
  return { service: "lab", url: known.state?.lab.url ?? "", path: `/lab/v1/jobs/${id}${part}` };
}

/** What of a job can be kept as files. */
function JobFiles({ findings: { job, passages }, of }: { findings: JobFindings; of: string }) {
  const keep = async (path: string, name: string) => {
    const [response, { download }] = await Promise.all([open(path), import("../pictures.js")]);
    download(name, await response.blob());
  };
  const short = job.id.slice(0, 8);
  const { artifacts } = job.result;
  const partOf = (file: string) => `/artifacts/${encodeURIComponent(file)}`;
  const requests = () => [
    labJob(job.id),
    ...artifacts.map((file) => ({ ...labJob(job.id, partOf(file)), file })),
  ];
  const name = `tapline-${job.operation}-${short}`;
  const files = [
    ["/report", `${name}.html`, "Report as one HTML file"],
    ["", `${name}.json`, "Job as JSON"],
    ...artifacts.map((file) => [partOf(file), file, <bdi key={file}>{file}</bdi>] as const),
  ] as const;
  return (
    <section class="card" aria-label={`Files${of}`}>
      <h2>Files</h2>
      <p class="row">
        {files.map(([part, name, words]) => (
          <Button key={part} onClick={() => void keep(`/api/jobs/${job.id}${part}`, name)}>
            {words}
          </Button>
        ))}
      </p>
      {passages.length > 0 && (
        <p class="soft">
          The report also has: {passages.map(({ title }) => title.toLowerCase()).join(", ")}.
        </p>
      )}
      <RequestCode of="its files" request={requests} />
      <CommandCode lines={[`tapline report ${short}`]} />
      <p class="soft">
        Job <code>{job.id}</code>.{" "}
        <a href={`/jobs/${job.id}`} onClick={follow}>
          Its own address
        </a>
      </p>
    </section>
  );
}
