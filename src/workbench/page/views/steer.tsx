import { useState } from "preact/hooks";
import type { StoredVector } from "../../../contracts/library.js";
import { figureOf } from "../../../report/figure.js";
import { chatSettings } from "../chat-settings.js";
import { labModel, spreadLayers, submit } from "../jobs.js";
import { follow, go } from "../router.js";
import { call } from "../session.js";
import { known, useTopic } from "../store.js";
import { newEdit, useLibrary } from "./edits.js";
import { Form, useKept, useTrying } from "./form.js";
import { JobResult } from "./job-result.js";
import { LayersField, parseLayers } from "./layers-field.js";
import { linesOf, TextsField } from "./texts-field.js";

const country = (names: string[]) => names.map((name) => `The capital of ${name} is`).join("\n");

/** The texts that a direction is made from; kept while one looks at other views. */
const draft = {
  name: "unknown",
  positive: country(["Brovia", "Zondia", "Keltora", "Marvenia", "Ostrania", "Velmora"]),
  negative: country(["Spain", "Italy", "Japan", "Poland", "Norway", "Greece"]),
  /** What the direction of these texts is tried on. */
  prompt: "The capital of Sweden is",
  layer: 5,
};

/** A direction from two lists of texts, how well it separates, and what it does at several strengths. */
export function SteerView({ id }: { id: string | undefined }) {
  useTopic("state");
  const library = useLibrary();
  const [layers, setLayers] = useState(spreadLayers(8).join(", "));
  const { problem, trying } = useTrying();
  const [making, setMaking] = useState(false);
  const set = useKept(draft);
  const make = async () => {
    setMaking(true);
    await trying(async () => {
      const body = {
        name: draft.name,
        positive: linesOf(draft.positive),
        negative: linesOf(draft.negative),
        layers: parseLayers(layers) ?? spreadLayers(8),
      };
      await call("/api/vectors", { method: "POST", body });
    });
    setMaking(false);
  };
  const respond = () =>
    trying(async () => {
      const job = await submit({
        operation: "compare",
        model: labModel(),
        prompt: draft.prompt,
        intervention: "steer",
        layers: [draft.layer],
        strengths: [-0.8, -0.4, -0.2, 0, 0.2, 0.4, 0.8],
        strength_unit: "row_norm",
        positives: linesOf(draft.positive),
        negatives: linesOf(draft.negative),
        controls: true,
      });
      go(`/steer/${job}`);
    });
  return (
    <div class="page">
      <h1>Steer</h1>
      <p class="soft">
        A direction is the difference of the states of two lists of texts at a block's output. Texts that
        differ in one thing alone make the better ones.
      </p>
      <Form onSubmit={make} problem={problem}>
        <div class="twins">
          <TextsField label="Towards" value={draft.positive} onChange={(positive) => set({ positive })} />
          <TextsField label="Away from" value={draft.negative} onChange={(negative) => set({ negative })} />
        </div>
        <p class="row">
          <label>
            name <input value={draft.name} onInput={(event) => set({ name: event.currentTarget.value })} />
          </label>
          <LayersField value={layers} onChange={setLayers} />
          <button type="submit" class="main" disabled={making || known.state?.server.ok !== true}>
            {making ? "Making …" : "Make"}
          </button>
        </p>
        <p class="row">
          <label>
            on <input value={draft.prompt} onInput={(event) => set({ prompt: event.currentTarget.value })} />
          </label>
          <label>
            at layer{" "}
            <input
              type="number"
              min={0}
              value={draft.layer}
              onInput={({ currentTarget: { valueAsNumber: layer } }) =>
                Number.isInteger(layer) && set({ layer })
              }
            />
          </label>
          <button type="button" disabled={known.state?.lab.ok !== true} onClick={() => void respond()}>
            Measure seven strengths beside random vectors
          </button>
        </p>
      </Form>
      {(library?.vectors ?? []).map((vector) => (
        <VectorCard key={vector.name} vector={vector} />
      ))}
      {library !== undefined && library.vectors.length === 0 && (
        <p class="soft">No directions are kept yet.</p>
      )}
      {id !== undefined && <JobResult id={id} />}
    </div>
  );
}

function VectorCard({ vector }: { vector: StoredVector }) {
  const best = vector.layers.reduce((one, other) =>
    (other.separation ?? 0) > (one.separation ?? 0) ? other : one,
  );
  return (
    <section class="card" aria-label={`Direction ${vector.name}`}>
      <h2>
        <bdi>{vector.name}</bdi>
      </h2>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Layers of ${vector.name}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">layer</th>
              <th scope="col" class="number">
                AUROC of held-out texts
              </th>
              <th scope="col" class="number">
                labels shuffled
              </th>
              <th scope="col" class="number">
                length
              </th>
              <th scope="col" class="number">
                typical row
              </th>
            </tr>
          </thead>
          <tbody>
            {vector.layers.map((layer) => (
              <tr key={layer.layer}>
                <th scope="row">{layer.layer}</th>
                <td class="number">
                  {layer.separation == null ? "too few texts" : layer.separation.toFixed(3)}
                </td>
                <td class="number">
                  {layer.shuffled_separation == null ? "" : layer.shuffled_separation.toFixed(3)}
                </td>
                <td class="number">{figureOf(layer.length)}</td>
                <td class="number">{layer.typical_row === undefined ? "" : figureOf(layer.typical_row)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="row">
        <a
          class="button"
          href="/chat"
          onClick={(event) => {
            chatSettings.edits = [...chatSettings.edits, newEdit("steer", best.layer, vector.name)];
            follow(event);
          }}
        >
          Try in chat, layer {best.layer}
        </a>
      </p>
    </section>
  );
}
