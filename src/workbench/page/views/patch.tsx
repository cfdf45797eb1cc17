import { useEffect, useState } from "preact/hooks";
import type { PatchSweepResult } from "../../../contracts/index.js";
import { patchTokens } from "../../../terminal/patch-sweep-sites.js";
import { visible } from "../../../terminal/text.js";
import { draft } from "../draft.js";
import { labModel, submit } from "../jobs.js";
import { go, select, usePlace } from "../router.js";
import { known, useTopic } from "../store.js";
import { Form, useTrying } from "./form.js";
import { JobResult, LetGo } from "./job-result.js";
import { LayersField, parseLayers } from "./layers-field.js";

/** Clean and corrupted side by side; for each layer and token, how far its state alone moves the answer. */
export function PatchView({ id }: { id: string | undefined }) {
  useTopic("state");
  const [clean, setClean] = useState(draft.patch?.clean ?? "The capital of France is");
  const [corrupted, setCorrupted] = useState(draft.patch?.corrupted ?? "The capital of Japan is");
  const [layers, setLayers] = useState("");
  const [direction, setDirection] = useState<"denoise" | "noise">("denoise");
  const { problem, trying } = useTrying();
  const { query } = usePlace();
  useEffect(() => {
    draft.patch = undefined;
  }, []);
  const run = () =>
    trying(async () => {
      const chosen = parseLayers(layers);
      const job = await submit({
        operation: "patch_sweep",
        model: labModel(),
        clean,
        corrupted,
        direction,
        ...(chosen !== undefined && { layers: chosen }),
      });
      go(`/patch/${job}${location.search}`);
    });
  return (
    <div class="page">
      <h1>Patch</h1>
      <p class="soft">
        States of one prompt in the run of another. Choose prompts that differ in one thing alone and have the
        same number of tokens.
      </p>
      <Form onSubmit={run} problem={problem}>
        <div class="twins">
          <label class="field">
            Clean
            <textarea rows={2} value={clean} onInput={(event) => setClean(event.currentTarget.value)} />
          </label>
          <label class="field">
            Corrupted
            <textarea
              rows={2}
              value={corrupted}
              placeholder="the same with one thing changed"
              onInput={(event) => setCorrupted(event.currentTarget.value)}
            />
          </label>
        </div>
        <p class="row">
          <LayersField value={layers} onChange={setLayers} />
          <label>
            question{" "}
            <select
              value={direction}
              onChange={(event) => setDirection(event.currentTarget.value as "noise")}
            >
              <option value="denoise">which state restores the clean answer</option>
              <option value="noise">which state spoils it</option>
            </select>
          </label>
          <button
            type="submit"
            class="main"
            disabled={known.state?.lab.ok !== true || clean.trim() === "" || corrupted.trim() === ""}
          >
            Patch
          </button>
        </p>
      </Form>
      {id !== undefined && (
        <JobResult
          id={id}
          pick={{
            figure: "patch-map",
            words: "shows this site's numbers",
            act: ({ figures }, row) => {
              const [layer, position] = figures.find(({ id }) => id === "patch-map")?.rows[row] ?? [];
              select({ l: Number(layer), t: Number(position) });
            },
          }}
        >
          {({ job, figures }) => {
            const map = figures.find(({ id }) => id === "patch-map");
            const [layer, position] = [query.get("l"), query.get("t")];
            const row =
              map?.rows.findIndex((cells) => String(cells[0]) === layer && String(cells[1]) === position) ??
              -1;
            const detail = map?.details[row];
            return (
              <>
                <Alignment result={job.result as PatchSweepResult} />
                {detail !== undefined && (
                  <section class="card" aria-label="Chosen site">
                    <p class="lines">{detail}</p>
                    <LetGo />
                  </section>
                )}
              </>
            );
          }}
        </JobResult>
      )}
    </div>
  );
}

/** Which token stands against which. */
function Alignment({ result }: { result: PatchSweepResult }) {
  const tokens = patchTokens(result);
  const [pair] = result.pairs;
  return (
    <section class="card" aria-label="Alignment">
      {pair !== undefined && (
        <p>
          Asked for: <bdi class="token">{visible(pair.target_token)}</bdi> against{" "}
          <bdi class="token">{visible(pair.foil_token)}</bdi>
        </p>
      )}
      <ol class="aligned">
        {tokens.map(({ position, clean, corrupted }) => (
          <li key={position} class={clean === corrupted ? "" : "differs"}>
            <bdi class="token">{clean === undefined ? "…" : visible(clean)}</bdi>
            <bdi class="token">{corrupted === undefined ? "…" : visible(corrupted)}</bdi>
          </li>
        ))}
      </ol>
    </section>
  );
}
