import { useState } from "preact/hooks";
import { detectionSentence } from "../../../findings/label-finding.js";
import type { MachineLabel } from "../../wire.js";
import { call, post } from "../session.js";
import { known } from "../store.js";
import { Choice, Field } from "./fields.js";
import { Button, Form, Problem, useDraft, useTrying } from "./form.js";

/** The form, kept while other views are open; the key is not stored anywhere else. */
const draft = { by: "served", url: "https://api.openai.com/v1", model: "", key: "" };

const sources = [
  ["served", "the served model"],
  ["endpoint", "an OpenAI-style endpoint"],
] as const;

interface FeatureLabelProps {
  job: string;
  sha256: string;
  feature: number;
  label: MachineLabel | undefined;
}

/** A label that a model has proposed with its test, or a form to propose one. */
export function FeatureLabel({ job, sha256, feature, label }: FeatureLabelProps) {
  const { problem, trying } = useTrying();
  const remove = () => trying(() => call(`/api/labels/${sha256}/${feature}`, { method: "DELETE" }));
  if (label === undefined) return <Propose job={job} feature={feature} />;
  return (
    <section class="machine-label" aria-label="Proposed label">
      <p>
        <span class="badge">machine-made</span> <bdi class="says">{label.label}</bdi>{" "}
        <span class="soft">
          by <bdi>{label.model}</bdi>
          {label.host !== null && ` at ${label.host}`}, from {label.proposedFrom} excerpts
        </span>{" "}
        <Button class="quiet" onClick={() => void remove()}>
          Remove label
        </Button>
      </p>
      <p class="soft">{detectionSentence(label.detection)}</p>
      <Problem sentence={problem} />
    </section>
  );
}

function Propose({ job, feature }: { job: string; feature: number }) {
  const { bind } = useDraft(draft);
  const { problem, trying } = useTrying();
  const [asking, setAsking] = useState(false);
  const { by, url, model, key } = draft;
  const isServed = by === "served";
  const propose = async () => {
    setAsking(true);
    const endpoint = {
      url: url.trim(),
      model: model.trim(),
      ...(key.trim() !== "" && { key: key.trim() }),
    };
    await trying(() => post("/api/labels", { job, feature, ...(!isServed && { endpoint }) }));
    setAsking(false);
  };
  const ready = isServed ? known.state?.server.ok === true : url.trim() !== "" && model.trim() !== "";
  return (
    <details class="machine-label" open={asking}>
      <summary>Propose a label</summary>
      <p class="soft">
        A model describes what half of the excerpts have in common. The label is then tested on the other
        half, and on excerpts without the feature.
      </p>
      <Form class="plain" onSubmit={() => !asking && propose()} problem={problem}>
        <p class="row">
          <Choice label="Asked" options={sources} {...bind("by")} />
          {!isServed && (
            <>
              <Field label="Address" class="labels" {...bind("url")} />
              <Field label="Model" {...bind("model")} />
              <label>
                Key{" "}
                <input
                  type="password"
                  autocomplete="off"
                  placeholder="optional, not stored"
                  value={key}
                  onInput={(event) => bind("key").onChange(event.currentTarget.value)}
                />
              </label>
            </>
          )}
          <button type="submit" disabled={asking || !ready}>
            {asking ? "Asking…" : "Propose and test"}
          </button>
          {asking && <progress aria-label={`Label of feature ${feature}`} />}
        </p>
        {!isServed && <p class="soft">The excerpts are sent to this address.</p>}
      </Form>
    </details>
  );
}
