import { useEffect, useMemo, useState } from "preact/hooks";
import { promptPairs } from "../../../contracts/check-patch-sweep.js";
import type { CompareResult, PatchSweepConfig, PatchSweepResult } from "../../../contracts/index.js";
import { type Figure, percent } from "../../../report/figure.js";
import { growingPatchMap } from "../../../report/figures/patch-growth.js";
import { patchTokens } from "../../../terminal/patch-sweep-sites.js";
import { visible } from "../../../terminal/text.js";
import type { TextTokens } from "../../wire.js";
import { draft } from "../draft.js";
import { type JobFindings, labModel, submit, useGrowth } from "../jobs.js";
import { go, select, usePlace } from "../router.js";
import { call } from "../session.js";
import { known, useTopic } from "../store.js";
import { DataTable, FigureView } from "./figure.js";
import { Form, Problem, useTrying } from "./form.js";
import { JobResult } from "./job-result.js";
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
  const tokens = useTokens([clean, corrupted]);
  const unequal = tokens !== undefined && tokens[0]?.length !== tokens[1]?.length;
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
            disabled={
              known.state?.lab.ok !== true || clean.trim() === "" || corrupted.trim() === "" || unequal
            }
          >
            Patch
          </button>
        </p>
        {tokens !== undefined && <Preview tokens={tokens} />}
      </Form>
      {id !== undefined && (
        <JobResult
          id={id}
          meanwhile={<Growing id={id} />}
          pick={{
            figure: "patch-map",
            words: "shows this site's numbers",
            act: (_, row, figure) => {
              const [layer, position] = figure.rows[row] ?? [];
              select({ l: Number(layer), t: Number(position), e: undefined });
            },
          }}
        >
          {(findings) => (
            <>
              <Alignment result={findings.job.result as PatchSweepResult} />
              <ChosenSite findings={findings} query={query} />
            </>
          )}
        </JobResult>
      )}
    </div>
  );
}

/** The tokens of texts, once nobody has typed for a moment; undefined until they are known. */
function useTokens(texts: string[]): TextTokens[] | undefined {
  const [found, set] = useState<{ key: string; tokens: TextTokens[] }>();
  const key = JSON.stringify(texts);
  const wanted = known.state?.server.ok === true && texts.every((text) => text.trim() !== "");
  useEffect(() => {
    if (!wanted) return;
    let ended = false;
    const timer = setTimeout(() => {
      call<{ tokens: TextTokens[] }>("/api/tokens", { method: "POST", body: { texts } }).then(
        ({ tokens }) => !ended && set({ key, tokens }),
        () => {},
      );
    }, 250);
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [key, wanted]);
  return found?.key === key ? found.tokens : undefined;
}

/** How the two texts stand against each other, before anything runs. */
function Preview({ tokens: [clean = [], corrupted = []] }: { tokens: TextTokens[] }) {
  const rows = Array.from({ length: Math.max(clean.length, corrupted.length) }, (_, position) => ({
    position,
    clean: clean[position]?.text,
    corrupted: corrupted[position]?.text,
  }));
  const differ = rows.filter((row) => row.clean !== row.corrupted).length;
  return (
    <section aria-label="Tokens">
      <Columns rows={rows} missing="nothing" />
      <p class={clean.length === corrupted.length ? "soft" : "problem"} role="status">
        {clean.length === corrupted.length
          ? `${clean.length} tokens in both; ${differ === 1 ? "1 differs" : `${differ} differ`}.`
          : `The clean text has ${clean.length} tokens and the corrupted one ${corrupted.length}; a patch needs as many in both.`}
      </p>
    </section>
  );
}

/** The map, as far as it is computed. */
function Growing({ id }: { id: string }) {
  const growth = useGrowth(id);
  const figure = useMemo(() => (growth === undefined ? undefined : growingPatchMap(growth)), [growth]);
  if (figure === undefined) return null;
  return <FigureView figure={figure} name={`tapline-patch_sweep-${id.slice(0, 8)}-so-far`} />;
}

/** A site's numbers, and what its state alone does to the next tokens. */
function ChosenSite({ findings, query }: { findings: JobFindings; query: URLSearchParams }) {
  const { problem, trying } = useTrying();
  const [layer, position, effect] = [query.get("l"), query.get("t"), query.get("e")];
  const at = (figure: Figure) =>
    figure.rows.findIndex((cells) => String(cells[0]) === layer && String(cells[1]) === position);
  const map = findings.figures.find((figure) => figure.id.startsWith("patch-map") && at(figure) >= 0);
  if (map === undefined) return null;
  const { job } = findings;
  const result = job.result as PatchSweepResult;
  const look = () =>
    trying(async () => {
      const body = await effectOf(job, Number(layer), Number(position));
      select({ e: await submit(body) });
    });
  return (
    <section class="card" aria-label="Chosen site">
      <p class="lines">{map.details[at(map)]}</p>
      <p class="row">
        {result.pairs.length === 1 && (result.points ?? ["block_out"]).includes("block_out") && (
          <button type="button" class="main" onClick={() => void look()}>
            What it does to the next tokens
          </button>
        )}
        <button
          type="button"
          class="quiet"
          onClick={() => select({ l: undefined, t: undefined, e: undefined })}
        >
          Let go
        </button>
      </p>
      <Problem sentence={problem} />
      {effect !== null && /^[0-9a-f]{32}$/.test(effect) && (
        <JobResult key={effect} id={effect} shows={() => false}>
          {({ job }) => <Effect result={job.result as CompareResult} />}
        </JobResult>
      )}
    </section>
  );
}

/** What the model goes on with: by itself, with the state, and with a random change that is as long. */
function Effect({ result: { trials } }: { result: CompareResult }) {
  const [trial] = trials;
  if (trial === undefined) return null;
  const { target_token, baseline, baseline_probability, output, probability, control } = trial;
  const rows = [
    ["the run by itself", baseline, percent(baseline_probability)],
    ["with this state", output, percent(probability)],
    ...(control === undefined
      ? []
      : [["with a random change as long", control.output, percent(control.probability)]]),
  ];
  const head = ["run", "goes on with", `probability of ${visible(target_token)}`];
  return <DataTable head={head} rows={rows} label="next tokens" />;
}

/**
 * The comparison that puts one state of one prompt into the run of the other, beside a random change. It takes the state
 * from the donor's last token, so that the donor is the text up to there.
 * @throws Error where that text by itself has other tokens
 */
async function effectOf(
  job: JobFindings["job"],
  layer: number,
  position: number,
): Promise<Record<string, unknown>> {
  const { pairs, direction } = job.result as PatchSweepResult;
  const [prompts] = promptPairs(job.config as PatchSweepConfig);
  const [pair] = pairs as [PatchSweepResult["pairs"][number]];
  const { clean, corrupted } = prompts as { clean: string; corrupted: string };
  const [prompt, donor] = direction === "denoise" ? [corrupted, clean] : [clean, corrupted];
  const tokens = direction === "denoise" ? pair.clean : pair.corrupted;
  const place = position < 0 ? tokens.tokens.length + position : position;
  // Whatever text up to there has these very tokens.
  const wanted = tokens.token_ids.slice(0, place + 1);
  const beginning = place + 1 === tokens.tokens.length ? donor : beginningOf(donor, tokens.tokens, place);
  const { tokens: found } = await call<{ tokens: TextTokens[] }>("/api/tokens", {
    method: "POST",
    body: { texts: [beginning] },
  });
  if (JSON.stringify(found[0]?.map(({ id }) => id)) !== JSON.stringify(wanted)) {
    throw new Error(
      "The text up to this token has other tokens by itself; its state is not what the map has.",
    );
  }
  return {
    ...{ operation: "compare", model: job.model, prompt, donor_prompt: beginning, intervention: "patch" },
    ...{ layers: [layer], positions: [[place, place]], strengths: [1], controls: true, max_tokens: 8 },
    target_token: pair.target_token,
  };
}

/** A text up to one of its tokens: without what lies behind. */
function beginningOf(text: string, tokens: readonly string[], place: number): string {
  const behind = tokens.slice(place + 1).join("");
  return text.endsWith(behind) ? text.slice(0, text.length - behind.length) : text;
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
      <Columns rows={tokens} missing="…" />
    </section>
  );
}

/** Tokens of two texts, one below the other. */
function Columns({
  rows,
  missing,
}: {
  rows: { position: number; clean?: string | undefined; corrupted?: string | undefined }[];
  missing: string;
}) {
  return (
    <ol class="aligned">
      {rows.map(({ position, clean, corrupted }) => (
        <li key={position} class={clean === corrupted ? "" : "differs"}>
          <bdi class="token">{clean === undefined ? missing : visible(clean)}</bdi>
          <bdi class="token">{corrupted === undefined ? missing : visible(corrupted)}</bdi>
        </li>
      ))}
    </ol>
  );
}
