import { useState } from "preact/hooks";
import { licenses } from "../../../contracts/studies/licenses.js";
import { studyLimits } from "../../../contracts/studies/limits.js";
import type { StudyDraft } from "../../wire.js";
import { forgetWords, keepWords, keptWords } from "../kept-words.js";
import { select } from "../router.js";
import { post } from "../session.js";
import { useWork } from "../store.js";
import { noWords, type StudyWords } from "../study-words.js";
import { CommandCode } from "./command-code.js";
import { Area, Choice } from "./fields.js";
import { Button, Form, useTrying } from "./form.js";

type Text = Exclude<keyof StudyWords, "omissions" | "license">;

/** The places that a person fills, and what belongs there. */
const places: { name: Text; label: string; hint: string; rows: number }[] = [
  { name: "title", label: "Title", hint: `at most ${studyLimits.title} characters`, rows: 1 },
  { name: "question", label: "Question", hint: "what did you ask?", rows: 2 },
  {
    name: "hypothesis",
    label: "Hypothesis",
    hint: "what did you expect, before you looked? May stay empty",
    rows: 2,
  },
  {
    name: "method",
    label: "Method",
    hint: "begun from the jobs' settings; say why these, and go on from there",
    rows: 4,
  },
  { name: "finding", label: "Finding", hint: "what came out? May stay empty", rows: 3 },
  { name: "limitations", label: "Limitations", hint: "what does it not show?", rows: 3 },
];

/** Jobs become a study: tapline brings what was measured, a person the words. */
export function StudyDraftCard({ jobs }: { jobs: string[] }) {
  const [words, setWords] = useState<StudyWords>(keptWords);
  const [drafted, setDrafted] = useState<StudyDraft>();
  const { problem, trying } = useTrying();
  const set = (change: Partial<StudyWords>) =>
    setWords((before) => {
      const after = { ...before, ...change };
      keepWords(after);
      return after;
    });
  const ask = () => post<StudyDraft>("/api/studies", { jobs, words });
  const key = jobs.join();
  useWork([key], (isOver) => {
    if (jobs.length === 0) setDrafted(undefined);
    else
      void trying(async () => {
        const found = await ask();
        if (isOver()) return;
        // What nobody has touched follows the jobs.
        setWords((before) => {
          const own = before.method.trim() !== "" && before.method !== drafted?.method;
          return own ? before : { ...before, method: found.method };
        });
        setDrafted({ ...found, faults: [] });
      });
  });
  const keep = async (kind: "package" | "words") => {
    await trying(async () => {
      const found = await ask();
      setDrafted(kind === "words" ? { ...found, faults: [] } : found);
      const { download } = await import("../pictures.js");
      if (kind === "words") download("words.md", new Blob([found.words], { type: "text/markdown" }));
      else if (found.package !== undefined) {
        download("tapline-study.json", new Blob([found.package], { type: "application/json" }));
      }
    });
  };
  return (
    <section aria-label="Study draft" class="study">
      <h2>Study draft</h2>
      <p class="soft">
        {jobs.length === 0
          ? "Tick the jobs in the list that belong to it."
          : "tapline brings what was measured. The words are yours: nothing is written for you but the settings under Method."}
      </p>
      {jobs.length > 0 && (
        <Form onSubmit={() => keep("package")} problem={problem}>
          {places.map(({ name, label, hint, rows }) => (
            <Area
              key={name}
              {...{ label, hint, rows }}
              value={words[name]}
              onChange={(text) => set({ [name]: text })}
            />
          ))}
          <Area
            label="Left out"
            hint="what you left out and why, one a line; tapline adds its own"
            rows={2}
            value={words.omissions.join("\n")}
            onChange={(text) => set({ omissions: text.split("\n") })}
          />
          <p class="row">
            <Choice
              label="license"
              value={words.license}
              options={[["", "choose one"], ...licenses]}
              onChange={(license) => set({ license })}
            />
            <button type="submit" class="main">
              Save the package
            </button>
            <Button onClick={() => void keep("words")}>Save the words as they are</Button>
            <Button
              class="quiet"
              onClick={() => {
                forgetWords();
                setWords({ ...noWords, method: drafted?.method ?? "" });
              }}
            >
              Empty all places
            </Button>
          </p>
          {drafted !== undefined && drafted.faults.length > 0 && (
            <div class="problem" role="alert">
              <p>It is no package yet:</p>
              <ul>
                {drafted.faults.map((fault) => (
                  <li key={fault}>{fault}</li>
                ))}
              </ul>
            </div>
          )}
          {drafted !== undefined && <Brought drafted={drafted} />}
        </Form>
      )}
      {jobs.length > 0 && (
        <CommandCode
          lines={[
            `tapline study package --job ${jobs.join(" ")} --words words.md --draft`,
            "# or, of a package that is saved:",
            "tapline study draft tapline-study.json",
          ]}
        />
      )}
      <p>
        <Button class="quiet" onClick={() => select({ study: undefined })}>
          Close the draft
        </Button>
      </p>
    </section>
  );
}

/** What tapline puts into the package, and what not. */
function Brought({ drafted: { entries, omissions } }: { drafted: StudyDraft }) {
  return (
    <details>
      <summary>
        {entries.length === 1 ? "1 entry" : `${entries.length} entries`} of evidence
        {omissions.length > 0 && `, ${omissions.length} left out`}
      </summary>
      <ul>
        {entries.map(({ kind, title }, at) => (
          <li key={at}>
            {kind}: <bdi>{title}</bdi>
          </li>
        ))}
      </ul>
      {omissions.length > 0 && (
        <>
          <p>Left out:</p>
          <ul>
            {omissions.map((line) => (
              <li key={line}>
                <bdi>{line}</bdi>
              </li>
            ))}
          </ul>
        </>
      )}
    </details>
  );
}
