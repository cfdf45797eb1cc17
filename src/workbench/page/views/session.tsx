import { useState } from "preact/hooks";
import type { Job, JobSummary } from "../../../contracts/index.js";
import { count } from "../../../findings/numbers.js";
import { titleOfJob } from "../job-list.js";
import { isActive, useAllFindings } from "../jobs.js";
import { notebookOf } from "../notebook.js";
import { follow, select, usePlace } from "../router.js";
import { call } from "../session.js";
import { known, useTopic } from "../store.js";
import { studyJobs, withJob } from "../study.js";
import { CopyLink } from "./copy-link.js";
import { Choice } from "./fields.js";
import { Button, Problem, useTrying } from "./form.js";
import { saveText } from "./picture.js";
import { PublishCard } from "./publish.js";
import { StudyDraftCard } from "./study-draft.js";

const scopes = [
  ["started", "since the workbench started"],
  ["day", "in the last 24 hours"],
  ["all", "ever listed"],
] as const;
type Scope = (typeof scopes)[number][0];

/** What was done, in order, and the study that it becomes. */
export function SessionView() {
  useTopic("state");
  const { query } = usePlace();
  const [scope, setScope] = useState<Scope>("started");
  const { problem, trying } = useTrying();
  const { state } = known;
  const included = studyJobs(query) ?? [];
  const since = { started: state?.started ?? 0, day: Date.now() / 1000 - 86_400, all: 0 }[scope];
  // Jobs of the draft are shown whenever they ran.
  const jobs = (state?.jobs ?? [])
    .filter(({ id, created }) => created >= since || included.includes(id))
    .toSorted((a, b) => a.created - b.created);
  const conversations = (state?.conversations ?? []).filter(({ created }) => created >= since);
  const findings = useAllFindings(included);
  const saveNotebook = () =>
    trying(async () => {
      const chosen = included.length > 0 ? jobs.filter(({ id }) => included.includes(id)) : jobs;
      const read = await Promise.all(
        chosen
          .filter(({ status }) => !isActive(status))
          .map(async (job) => {
            const found = await call<{ job: Job; summary?: string[] }>(`/api/jobs/${job.id}/findings`);
            const note = state?.notes[job.id];
            return {
              ...{ id: job.id, title: titleOfJob(job, note), note: note?.note },
              ...{ config: found.job.config as Record<string, unknown>, summary: found.summary ?? [] },
            };
          }),
      );
      if (read.length === 0) throw new Error("There is no finished job to write into a notebook.");
      saveText(
        "tapline-session.ipynb",
        "application/x-ipynb+json",
        notebookOf("Session", state?.lab.url ?? "", read),
      );
    });
  return (
    <div class="page">
      <h1>Session</h1>
      <p class="soft">
        What you did, in order. Include jobs to draft a study from them, save a notebook that repeats them, or
        copy a link to this selection.
      </p>
      <p class="row">
        <Choice label="Show what ran" value={scope} options={scopes} onChange={setScope} />
        <Button onClick={() => void saveNotebook()}>Save notebook (.ipynb)</Button>
        <CopyLink />
        <span class="soft">
          {count(jobs.length, "job")}, {count(conversations.length, "conversation")}
        </span>
      </p>
      <Problem sentence={problem} />
      {jobs.length === 0 ? (
        <p class="soft">Nothing yet. Run an experiment in any view.</p>
      ) : (
        <ol class="plain timeline">
          {jobs.map((job) => (
            <Step key={job.id} job={job} included={included} sentence={sentenceOf(findings.get(job.id))} />
          ))}
        </ol>
      )}
      {conversations.length > 0 && (
        <section class="card" aria-label="Conversations of the session">
          <h2>Conversations</h2>
          <ul class="plain">
            {conversations.map(({ id, title, turns }) => (
              <li key={id}>
                <a href={`/chat/${id}`} onClick={follow}>
                  <bdi>{title}</bdi>
                </a>{" "}
                <span class="soft">{count(turns, "question")}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {(included.length > 0 || query.has("study")) && (
        <>
          <StudyDraftCard jobs={included} />
          {included.length > 0 && <PublishCard jobs={included} />}
        </>
      )}
    </div>
  );
}

function sentenceOf(
  found: ReturnType<typeof useAllFindings> extends ReadonlyMap<string, infer F> ? F | undefined : never,
) {
  if (found === undefined || typeof found === "string") return found;
  return "summary" in found ? found.summary[0] : undefined;
}

function Step({
  job,
  included,
  sentence,
}: {
  job: JobSummary;
  included: readonly string[];
  sentence: string | undefined;
}) {
  const note = known.state?.notes[job.id];
  const short = job.id.slice(0, 8);
  return (
    <li class="card">
      <p class="row">
        <span class="soft number">{new Date(job.created * 1000).toLocaleTimeString()}</span>
        <a href={`/jobs/${job.id}`} onClick={follow}>
          <bdi>{titleOfJob(job, note)}</bdi>
        </a>
        <span class="soft">
          {job.operation}
          {job.status !== "completed" && `, ${job.status}`}
        </span>
        {!isActive(job.status) && (
          <label class="check">
            <input
              type="checkbox"
              aria-label={`Include job ${short} in the study`}
              checked={included.includes(job.id)}
              onChange={(event) => select({ study: withJob(included, job.id, event.currentTarget.checked) })}
            />
            Include in the study
          </label>
        )}
      </p>
      {sentence !== undefined && <p class="says">{sentence}</p>}
      {note?.note !== undefined && <p class="lines soft">{note.note}</p>}
    </li>
  );
}
