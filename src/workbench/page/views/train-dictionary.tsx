import { useState } from "preact/hooks";
import type { Job } from "../../../contracts/index.js";
import { isActive, useJobSummary, usualLayers } from "../jobs.js";
import { linesOf } from "../lists.js";
import { follow } from "../router.js";
import { post } from "../session.js";
import { known, useWork } from "../store.js";
import { Area, Choice, Field, NumberField } from "./fields.js";
import { Button, Form, useDraft, useTrying } from "./form.js";
import { JobProgress } from "./job-result.js";

/** The form and the training in progress, kept while other views are open. */
const draft: {
  name: string;
  layer: number | undefined;
  features: number;
  k: number;
  texts: string;
  running: { job: string; name: string; layer: number } | undefined;
  saved: { job: string; name: string } | undefined;
} = { name: "own", layer: undefined, features: 256, k: 8, texts: "", running: undefined, saved: undefined };

/** Trains a dictionary on the served model and saves it. */
export function TrainDictionary({ onSaved }: { onSaved: (name: string) => void }) {
  const { set, bind } = useDraft(draft);
  const { problem, trying } = useTrying();
  const [saving, setSaving] = useState(false);
  const layers = known.state?.server.n_layer ?? 1;
  const layer = draft.layer ?? Math.floor(layers / 2);
  const { running, saved } = draft;
  const summary = useJobSummary(running?.job);
  const status = summary?.status;
  const save = async () => {
    if (running === undefined) return;
    setSaving(true);
    const done = await trying(() => post("/api/dictionaries", running));
    setSaving(false);
    if (!done) return;
    set({ running: undefined, saved: running });
    onSaved(running.name);
  };
  useWork([running?.job, status], () => {
    if (status === "completed" && !saving) void save();
  });
  const train = () =>
    trying(async () => {
      const texts = linesOf(draft.texts);
      const body = {
        ...{ layer, features: draft.features, k: draft.k },
        ...(texts.length > 0 && { texts: [...new Set(texts)] }),
      };
      const job = await post<Job>("/api/dictionaries/train", body);
      set({ running: { job: job.id, name: draft.name.trim(), layer }, saved: undefined });
    });
  const ended = status !== undefined && !isActive(status) && status !== "completed";
  return (
    <details class="card" open={running !== undefined || saved !== undefined}>
      <summary>Train a dictionary</summary>
      <Form class="plain" onSubmit={() => running === undefined && train()} problem={problem}>
        <p class="soft">
          A small dictionary of one layer, trained on every token of the texts. It shows how features work;
          published dictionaries are trained on far more text.
        </p>
        <p class="row">
          <Field label="Name" {...bind("name")} />
          <Choice
            label="Layer"
            value={layer}
            options={usualLayers(layers)}
            onChange={(layer) => set({ layer })}
          />
          <NumberField label="Features" min={8} max={512} {...bind("features")} />
          <NumberField label="Active per token" min={1} max={64} {...bind("k")} />
          <button
            type="submit"
            class="main"
            disabled={known.state?.lab.ok !== true || draft.name.trim() === "" || running !== undefined}
          >
            {running === undefined ? "Train and save" : "Training…"}
          </button>
        </p>
        <details>
          <summary>Texts</summary>
          <Area
            label="Your own texts"
            hint="one per line, at least 16; empty: 208 sentences in eight styles and their opposites"
            rows={4}
            {...bind("texts")}
          />
        </details>
      </Form>
      {running !== undefined && (
        <div class="row" role="group" aria-label={`Training ${running.name}`}>
          {ended ? (
            <>
              <span class="problem">{summary?.error ?? `The job was ${status}.`}</span>
              <Button onClick={() => set({ running: undefined })}>Dismiss</Button>
            </>
          ) : status === "completed" ? (
            <>
              <span>{saving ? "Saving…" : "Trained, but not saved."}</span>
              {!saving && <Button onClick={() => void save()}>Retry</Button>}
            </>
          ) : (
            <JobProgress id={running.job} />
          )}
        </div>
      )}
      {saved !== undefined && (
        <p role="status">
          Saved as <bdi>{saved.name}</bdi> and selected above.{" "}
          <a href={`/jobs/${saved.job}`} onClick={follow}>
            How well it was trained
          </a>
        </p>
      )}
    </details>
  );
}
