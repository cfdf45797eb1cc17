import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { JobSummary } from "../../../contracts/index.js";
import { workbenchLimits } from "../../../contracts/workbench-limits.js";
import { count } from "../../../findings/numbers.js";
import { duration } from "../../../terminal/spans.js";
import { filterJobs, type JobFilter, noFilter, titleOfJob } from "../job-list.js";
import { isActive, submit } from "../jobs.js";
import { follow, go } from "../router.js";
import { call, post } from "../session.js";
import { known } from "../store.js";
import { jobPath } from "../study.js";
import { Area, Choice, Field } from "./fields.js";
import { Button, Form, Problem, useDraft, useTrying } from "./form.js";
import { JobProgress } from "./job-result.js";
import { Table } from "./table.js";

/** The filter, kept while other views are open. */
const filter: JobFilter = { ...noFilter };

const titles = ["Job", "Experiment", "Submitted", "Status", { hidden: "actions" }];

/** The Lab's jobs: searched, filtered, pinned, repeated, compared and deleted. */
export function JobList({ shown }: { shown: string | undefined }) {
  const { set, bind } = useDraft(filter);
  const { jobs = [], notes = {} } = known.state ?? {};
  const listed = filterJobs(jobs, notes, filter);
  const of = (values: readonly string[], all: string) => [
    ["", all] as const,
    ...[...new Set(values)].sort().map((value) => [value, value] as const),
  ];
  return (
    <section aria-label="Jobs of the Lab">
      <p class="row" role="search">
        <Field label="Search" placeholder="title, note, model, id" {...bind("words")} />
        <Choice
          label="Experiment"
          options={of(
            jobs.map(({ operation }) => operation),
            "all",
          )}
          {...bind("operation")}
        />
        <Choice
          label="Status"
          options={of(
            jobs.map(({ status }) => status),
            "all",
          )}
          {...bind("status")}
        />
        <span class="soft" role="status">
          {listed.length === jobs.length
            ? count(jobs.length, "job")
            : `${listed.length} of ${count(jobs.length, "job")}`}
        </span>
        {listed.length < jobs.length && (
          <Button class="quiet" onClick={() => set(noFilter)}>
            Show all
          </Button>
        )}
      </p>
      <Table label="All jobs" titles={titles} class="jobs-table">
        {listed.map((job) => (
          <JobRow key={job.id} job={job} shown={shown} />
        ))}
      </Table>
    </section>
  );
}

/** Two inspections are compared cell by cell, other jobs are shown next to each other. */
function comparePath(shown: string, { id, operation }: JobSummary): string {
  const other = known.state?.jobs.find((job) => job.id === shown)?.operation;
  return operation === "inspect" && other === "inspect"
    ? `/compare/${shown}?with=${id}`
    : jobPath(shown, { beside: id });
}

function shortTime(seconds: number): string {
  return new Date(seconds * 1000).toLocaleString([], { dateStyle: "short", timeStyle: "short" });
}

function JobRow({ job, shown }: { job: JobSummary; shown: string | undefined }) {
  const { problem, trying } = useTrying();
  const active = isActive(job.status);
  const short = job.id.slice(0, 8);
  const note = known.state?.notes[job.id];
  const again = () =>
    trying(async ({ go }) => {
      const { config } = await call<{ config: Record<string, unknown> }>(`/api/jobs/${job.id}`);
      go(`/jobs/${await submit(config)}`);
    });
  const pin = () => trying(() => post(`/api/jobs/${job.id}/note`, { pinned: note?.pinned !== true }));
  return (
    <tr aria-current={job.id === shown ? "true" : undefined}>
      <th scope="row">
        {note?.pinned && (
          <span class="pinned" title="Pinned">
            ★<span class="visually-hidden">Pinned: </span>
          </span>
        )}
        <a href={`/jobs/${job.id}`} onClick={follow}>
          <bdi>{titleOfJob(job, note)}</bdi>
        </a>
        {note?.note !== undefined && <p class="soft clipped">{note.note}</p>}
      </th>
      <td>
        {job.operation}
        <span class="soft nowrap">
          {" "}
          <bdi>{job.model.split(/[/\\]/).at(-1)}</bdi> <code>{short}</code>
        </span>
      </td>
      <td class="nowrap">{shortTime(job.created)}</td>
      <td>
        {active ? (
          <JobProgress id={job.id} />
        ) : (
          <>
            {job.status}
            {job.started !== null && job.ended !== null && (
              <span class="soft nowrap"> in {duration(job.ended - job.started)}</span>
            )}
            {job.error !== undefined && <p class="problem">{job.error}</p>}
          </>
        )}
      </td>
      <td>
        <span class="row">
          {!active && (
            <Button class="quiet" aria-label={`Repeat job ${short}`} onClick={() => void again()}>
              Repeat
            </Button>
          )}
          {!active && shown !== undefined && shown !== job.id && (
            <a href={comparePath(shown, job)} onClick={follow} aria-label={`Compare with job ${short}`}>
              Compare
            </a>
          )}
          <Button
            class="quiet"
            aria-pressed={note?.pinned === true}
            aria-label={`Pin job ${short}`}
            onClick={() => void pin()}
          >
            Pin
          </Button>
          {!active && <DeleteJob job={job} shown={shown} />}
          <Problem sentence={problem} />
        </span>
      </td>
    </tr>
  );
}

/** Deletes a job and its files, after a second press. */
function DeleteJob({ job, shown }: { job: JobSummary; shown: string | undefined }) {
  const [sure, setSure] = useState(false);
  const cancel = useRef<HTMLButtonElement>(null);
  const { problem, trying } = useTrying();
  const short = job.id.slice(0, 8);
  // The pressed button is gone; move the focus to the harmless one.
  useLayoutEffect(() => {
    if (sure) cancel.current?.focus();
  }, [sure]);
  const remove = () =>
    trying(async () => {
      await call(`/api/jobs/${job.id}`, { method: "DELETE" });
      if (job.id === shown) go("/jobs");
      document.getElementById("content")?.focus();
    });
  if (!sure) {
    return (
      <Button class="quiet" aria-label={`Delete job ${short}`} onClick={() => setSure(true)}>
        Delete
      </Button>
    );
  }
  return (
    <>
      <Button aria-label={`Confirm deleting job ${short}`} onClick={() => void remove()}>
        Delete with its files
      </Button>
      <button
        type="button"
        class="quiet"
        ref={cancel}
        aria-label={`Cancel deleting job ${short}`}
        onClick={() => setSure(false)}
      >
        Cancel
      </button>
      <Problem sentence={problem} />
    </>
  );
}

/** A job's title and note, and a form that changes them. */
export function JobHeading({ id }: { id: string }) {
  const job = known.state?.jobs.find((one) => one.id === id);
  const note = known.state?.notes[id];
  const [draft, setDraft] = useState<{ title: string; note: string }>();
  const { problem, trying } = useTrying();
  if (job === undefined) return null;
  const title = titleOfJob(job, note);
  const save = () =>
    trying(async () => {
      // The title made from the prompt is not the user's.
      const own = draft?.title === note?.title ? "" : draft?.title;
      await post(`/api/jobs/${id}/note`, { title: own, note: draft?.note });
      setDraft(undefined);
    });
  return (
    <header class="job-heading">
      <h2>
        <bdi>{title}</bdi>
      </h2>
      <p class="soft">
        {job.operation} of <bdi>{job.model.split(/[/\\]/).at(-1)}</bdi>,{" "}
        {new Date(job.created * 1000).toLocaleString()}
      </p>
      {draft === undefined ? (
        <>
          {note?.note !== undefined && <p class="lines">{note.note}</p>}
          <p>
            <Button class="quiet" onClick={() => setDraft({ title, note: note?.note ?? "" })}>
              {note?.note === undefined ? "Rename or add a note" : "Edit title and note"}
            </Button>
          </p>
        </>
      ) : (
        <Form onSubmit={save} problem={problem}>
          <label class="field">
            Title{" "}
            <input
              class="whole"
              maxLength={workbenchLimits.job_title_characters}
              value={draft.title}
              onInput={(event) => setDraft({ ...draft, title: event.currentTarget.value })}
            />
          </label>
          <Area
            label="Note"
            rows={3}
            value={draft.note}
            onChange={(text) =>
              setDraft({ ...draft, note: text.slice(0, workbenchLimits.job_note_characters) })
            }
          />
          <p class="row">
            <button type="submit" class="main">
              Save
            </button>
            <Button class="quiet" onClick={() => setDraft(undefined)}>
              Cancel
            </Button>
          </p>
        </Form>
      )}
    </header>
  );
}
