import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Operation } from "../../../contracts/index.js";
import type { Figure } from "../../../findings/figure.js";
import { download } from "../../../report/page/save.js";
import { stageWords } from "../../../terminal/job-progress.js";
import { extent, timeLeft, waiting } from "../job-time.js";
import { isActive, type JobFindings, jobRequest, useFindings, useJobSummary } from "../jobs.js";
import { follow, select } from "../router.js";
import type { CodeRequest } from "../scripts.js";
import { open, post } from "../session.js";
import { known } from "../store.js";
import { CommandCode } from "./command-code.js";
import { CopyLink } from "./copy-link.js";
import { FigureView } from "./figure.js";
import { Button, Problem, useTrying } from "./form.js";
import { Menu } from "./menu.js";
import { RequestCode } from "./request-code.js";

/** What a click on a row of a figure does. */
export interface Pick<O extends Operation> {
  /** The figure's id, or its prefix. */
  figure: string;
  words: string;
  act: (findings: JobFindings<O>, row: number, figure: Figure) => void;
  /** The selected row of a figure. */
  selected?: (findings: JobFindings<O>, figure: Figure) => number | undefined;
  /** Shown next to the selected row's cell. */
  detail?: (findings: JobFindings<O>) => ComponentChildren;
}

interface JobResultProps<O extends Operation> {
  id: string;
  /** The view's operation; `children` and `below` are only shown for its jobs. */
  operation?: O;
  /** Suffix of the labels of its parts, if there is another job on the page. */
  of?: string;
  pick?: Pick<O>[];
  /** Which of its figures are shown; all by default. */
  shows?: (figure: string) => boolean;
  /** Shown below the progress of a running job. */
  meanwhile?: ComponentChildren;
  children?: (findings: JobFindings<O>) => ComponentChildren;
  /** Shown after the figures. */
  below?: (findings: JobFindings<O>) => ComponentChildren;
}

/** Removes the selection from the address. */
export function ClearSelection({ of }: { of: string[] }) {
  return (
    <Button class="quiet" onClick={() => select(Object.fromEntries(of.map((name) => [name, undefined])))}>
      Clear selection
    </Button>
  );
}

/** A job: its progress, then its result. */
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
  const [clicked, setClicked] = useState<string>();
  if (typeof findings === "string") {
    return <Problem sentence={findings} />;
  }
  if (findings === undefined) {
    if (summary === undefined) return <p class="soft">Loading job…</p>;
    const ended = !isActive(summary.status);
    return (
      <>
        <section class="card" aria-label={`Progress${of}`}>
          {ended ? (
            <Problem sentence={summary.error ?? `The job was ${summary.status}.`} />
          ) : (
            <>
              <JobProgress id={id} />
              <RequestCode of="cancel" request={{ ...labJob(id, "/cancel"), body: {} }} />
            </>
          )}
        </section>
        {!ended && meanwhile}
      </>
    );
  }
  const { job, cautions } = findings;
  const figures = findings.figures.filter(({ id }) => shows(id));
  const main = mainOf(figures);
  const own = job.operation === operation ? (findings as JobFindings<O>) : undefined;
  const name = `tapline-${job.operation}-${job.id.slice(0, 8)}`;
  const pickOf = ({ id }: Figure) => pick.find((one) => id.startsWith(one.figure));
  const selectedIn = (figure: Figure) => own && pickOf(figure)?.selected?.(own, figure);
  // Several maps may have the selected row; the card is at the click, or in the first of them.
  const having = figures.filter((figure) => selectedIn(figure) !== undefined);
  const holder = having.find(({ id }) => id === clicked) ?? having[0];
  const figureOf = (figure: Figure) => {
    const picked = own === undefined ? undefined : pickOf(figure);
    return (
      <FigureView
        key={`${job.id} ${figure.id}`}
        figure={figure}
        name={name}
        {...(own !== undefined &&
          picked !== undefined && {
            picks: picked.words,
            onPick: (row: number) => {
              setClicked(figure.id);
              picked.act(own, row, figure);
            },
            selected: selectedIn(figure),
            detail: figure === holder ? picked.detail?.(own) : undefined,
          })}
      />
    );
  };
  return (
    <div class="result">
      <JobFiles findings={findings} of={of} />
      <section class="lead" aria-label={`Result${of}`}>
        {findings.summary.map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
      </section>
      {own !== undefined && children?.(own)}
      {main !== undefined && figureOf(main)}
      <div class="multiples">{figures.filter((figure) => figure !== main).map(figureOf)}</div>
      {own !== undefined && below?.(own)}
      <aside class="notice" aria-label={`What this does not show${of}`}>
        <strong>What this does not show</strong>
        {cautions.map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
      </aside>
    </div>
  );
}

/** The figure that gets the whole width: the first map, otherwise the first figure. */
function mainOf(figures: readonly Figure[]): Figure | undefined {
  return figures.find(({ chart: { kind } }) => kind === "sites" || kind === "tokens") ?? figures[0];
}

/** The progress of a job, and the estimated time remaining. */
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

/** A request to the Lab for a part of a job. */
function labJob(id: string, part = ""): CodeRequest {
  return { service: "lab", url: known.state?.lab.url ?? "", path: `/lab/v1/jobs/${id}${part}` };
}

/** Exports and scripts of a job, in one menu. */
function JobFiles({ findings: { job, passages }, of }: { findings: JobFindings; of: string }) {
  const { problem, trying } = useTrying();
  const save = (path: string, name: string) =>
    trying(async () => download(name, await (await open(path)).blob()));
  const short = job.id.slice(0, 8);
  const { artifacts } = job.result;
  const partOf = (file: string) => `/artifacts/${encodeURIComponent(file)}`;
  const requests = () => [
    labJob(job.id),
    ...artifacts.map((file) => ({ ...labJob(job.id, partOf(file)), file })),
  ];
  const name = `tapline-${job.operation}-${short}`;
  const files = [
    ["/report", `${name}.html`, "Report as HTML"],
    ["", `${name}.json`, "Job as JSON"],
    ...artifacts.map((file) => [partOf(file), file, <bdi key={file}>{file}</bdi>] as const),
  ] as const;
  return (
    <div class="result-tools">
      <a href={`/jobs/${job.id}`} onClick={follow} aria-label={`Permalink: job ${short}`}>
        Job <code>{short}</code>
      </a>
      <CopyLink path={`/jobs/${job.id}`} />
      <Menu label="Export and scripts" {...(of !== "" && { name: `Export and scripts${of}` })}>
        <div class="stacked" role="group" aria-label={`Files${of}`}>
          {files.map(([part, name, words]) => (
            <Button key={part} class="quiet" onClick={() => void save(`/api/jobs/${job.id}${part}`, name)}>
              {words}
            </Button>
          ))}
        </div>
        {passages.length > 0 && (
          <p class="soft">
            The report also contains: {passages.map(({ title }) => title.toLowerCase()).join(", ")}.
          </p>
        )}
        <RequestCode request={jobRequest(job.config)} />
        <RequestCode of="download files" request={requests} />
        <CommandCode lines={[`tapline report ${short}`]} />
        <Problem sentence={problem} />
      </Menu>
    </div>
  );
}
