import { useState } from "preact/hooks";
import { chatSettings } from "../chat-settings.js";
import { labModel, spreadLayers, submit } from "../jobs.js";
import { follow, go } from "../router.js";
import { call } from "../session.js";
import { known, useTopic } from "../store.js";
import { useLibrary } from "./edits.js";
import { Form, useKept, useTrying } from "./form.js";
import { JobResult } from "./job-result.js";
import { LayersField, parseLayers } from "./layers-field.js";
import { linesOf, TextsField } from "./texts-field.js";

const praise = ["good", "great", "wonderful", "lovely", "superb", "excellent"];
const blame = ["bad", "poor", "awful", "boring", "weak", "terrible"];
const review = (words: string[]) =>
  words.map((word) => `The review says that the film was ${word}.`).join("\n");

/** The texts that a probe learns from; kept while one looks at other views. */
const draft = { name: "praise", positive: review(praise), negative: review(blame) };

/** A linear probe from two lists of texts: measured in a job with its controls, and kept for the chat. */
export function ProbeView({ id }: { id: string | undefined }) {
  useTopic("state");
  const library = useLibrary();
  const [layers, setLayers] = useState(spreadLayers(4).join(", "));
  const { problem, trying } = useTrying();
  const set = useKept(draft);
  const [positive, negative] = [linesOf(draft.positive), linesOf(draft.negative)];
  const chosen = () => parseLayers(layers) ?? spreadLayers(4);
  const train = () =>
    trying(async () => {
      const examples = [...heldOut(positive, 1), ...heldOut(negative, 0)];
      const job = await submit({ operation: "probe", model: labModel(), examples, layers: chosen() });
      go(`/probe/${job}`);
    });
  return (
    <div class="page">
      <h1>Probe</h1>
      <p class="soft">
        A linear probe reads one thing off a block's output. Every third text is held out, and the same is
        done with shuffled labels.
      </p>
      <Form onSubmit={train} problem={problem}>
        <div class="twins">
          <TextsField label="Class 1" value={draft.positive} onChange={(positive) => set({ positive })} />
          <TextsField label="Class 0" value={draft.negative} onChange={(negative) => set({ negative })} />
        </div>
        <p class="row">
          <LayersField value={layers} onChange={setLayers} />
          <button type="submit" class="main" disabled={known.state?.lab.ok !== true}>
            Train and measure
          </button>
          <label>
            name <input value={draft.name} onInput={(event) => set({ name: event.currentTarget.value })} />
          </label>
          <button
            type="button"
            disabled={known.state?.server.ok !== true}
            onClick={() =>
              void trying(async () => {
                const layer = chosen().at(-1);
                await call("/api/probes", {
                  method: "POST",
                  body: { name: draft.name, positive, negative, layer },
                });
              })
            }
          >
            Keep one for the chat, at the last of these layers
          </button>
        </p>
      </Form>
      {(library?.probes ?? []).map(({ name, layer, separation, shuffled_separation: shuffled }) => (
        <section class="card" key={name} aria-label={`Probe ${name}`}>
          <h2>
            <bdi>{name}</bdi>
          </h2>
          <p>
            Layer {layer}
            {separation !== undefined && `, AUROC of held-out texts ${separation.toFixed(3)}`}
            {shuffled !== undefined && `, with shuffled labels ${shuffled.toFixed(3)}`}
          </p>
          <a
            class="button"
            href={`/chat?show=${encodeURIComponent(`probe ${name}`)}`}
            onClick={(event) => {
              chatSettings.watch = name;
              follow(event);
            }}
          >
            Watch in chat
          </a>
        </section>
      ))}
      {id !== undefined && <JobResult id={id} />}
    </div>
  );
}

/** Every third text is held out. */
function heldOut(texts: string[], label: 0 | 1) {
  return texts.map((text, at) => ({ text, label, split: at % 3 === 2 ? "test" : "train" }));
}
