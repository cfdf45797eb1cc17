import { useEffect, useRef, useState } from "preact/hooks";
import { bytes, duration } from "../../../terminal/spans.js";
import { shellWord } from "../../../text/shell.js";
import { call } from "../session.js";
import { known, useTopic } from "../store.js";
import { CommandCode } from "./command-code.js";
import { Field } from "./fields.js";
import { Button, Form, useDraft, useTrying } from "./form.js";

/** The form, kept while other views are open. */
const draft = { from: "", name: "", layer: "" };

/** How much of a dictionary has been downloaded; afterwards the Lab converts it. */
function Progress({ name, from }: { name: string; from: string }) {
  useTopic("state");
  const download = known.state?.models.downloads.find(({ model }) => model === from);
  if (download === undefined || download.state !== "running" || download.total === 0) {
    return <progress aria-label={`Adding ${name}`} />;
  }
  const { done, total, speed } = download;
  return (
    <>
      <progress value={done} max={total} aria-label={`Downloading ${name}`} />
      <span class="number">
        {bytes(done)} of {bytes(total)}
        {speed > 0 && `, ${bytes(speed)} per second`}
      </span>
    </>
  );
}

/** Adds a published dictionary: downloaded with progress, then converted by the Lab. */
export function AddDictionary({ onAdded }: { onAdded: (name: string) => void }) {
  const { set, bind } = useDraft(draft);
  const [started, setStarted] = useState<number>();
  const [, again] = useState(0);
  const { problem, trying } = useTrying();
  const stopping = useRef<AbortController | undefined>(undefined);
  useEffect(() => {
    if (started === undefined) return;
    const timer = setInterval(() => again((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, [started]);
  const [from, name] = [draft.from.trim(), draft.name.trim()];
  const add = async () => {
    const abort = new AbortController();
    stopping.current = abort;
    setStarted(Date.now());
    await trying(async () => {
      const layer = draft.layer.trim();
      if (layer !== "" && !/^\d{1,3}$/.test(layer))
        throw new Error(`Layer: expected a number, got ${layer}.`);
      const body = { name, from, ...(layer !== "" && { layer: Number(layer) }) };
      try {
        await call("/api/dictionaries", { method: "POST", body, signal: abort.signal });
      } catch (error) {
        if (abort.signal.aborted) return;
        throw error;
      }
      set({ from: "", name: "", layer: "" });
      onAdded(name);
    });
    setStarted(undefined);
  };
  return (
    <details class="card" open={started !== undefined}>
      <summary>Add a dictionary</summary>
      <Form class="plain" onSubmit={() => started === undefined && add()} problem={problem}>
        <label class="field">
          Source <span class="soft">on the hub, owner/name/folder, or a path on this machine</span>
          <input
            class="whole"
            value={draft.from}
            placeholder="google/gemma-scope-2-270m-it/resid_post/layer_12_width_16k_l0_medium"
            onInput={(event) => set({ from: event.currentTarget.value })}
          />
        </label>
        <p class="row">
          <Field label="Save as" {...bind("name")} />
          <Field label="Layer, if not recorded" class="number" {...bind("layer")} />
          <button type="submit" class="main" disabled={from === "" || name === "" || started !== undefined}>
            {started === undefined ? "Add" : "Adding…"}
          </button>
          {started !== undefined && (
            <>
              <Progress name={name} from={from} />
              <span class="soft">{duration((Date.now() - started) / 1000)}</span>
              <Button onClick={() => stopping.current?.abort()}>Cancel</Button>
            </>
          )}
        </p>
      </Form>
      <CommandCode
        lines={[
          `tapline dictionary add ${name === "" ? "NAME" : shellWord(name)} ${from === "" ? "owner/name/folder" : shellWord(from)}`,
        ]}
      />
    </details>
  );
}
