import { useEffect, useMemo, useState } from "preact/hooks";
import { type ChangedPoint, changedPoints, spanMarks } from "../../../contracts/names.js";
import { growingPatchMap } from "../../../operations/patch_sweep/figures-growth.js";
import { draft } from "../draft.js";
import { labModel, serverRequest, submit, useAsked, useGrowth } from "../jobs.js";
import { type PatchForm, pairsOf, patchForm, patchFormOf, patchRequest } from "../patch-request.js";
import { siteOf, siteQuery } from "../patch-site.js";
import { select, usePlace } from "../router.js";
import type { CodeRequest } from "../scripts.js";
import { known, useTopic } from "../store.js";
import { Area, Check, Choice, Field, LayersField } from "./fields.js";
import { FigureView } from "./figure.js";
import { Form, useTrying } from "./form.js";
import { JobResult } from "./job-result.js";
import { ChosenSite } from "./patch-site.js";
import { Alignment, Preview, Spans, useTokens } from "./patch-tokens.js";
import { RequestCode } from "./request-code.js";

/** Each point in words. */
const points: Record<ChangedPoint, string> = {
  block_out: "block outputs",
  attn_out: "what attention adds",
  ffn_out: "what the MLP adds",
  mid: "the stream between them",
  block_in: "the stream before the block",
  head_out: "single heads",
};

/** Where states are put in, in words. */
const places = [
  ["every", "every token"],
  ["aligned", `the spans between ${spanMarks.join(" and ")}`],
  ["chosen", "these tokens"],
] as const;

const questions = [
  ["denoise", "which state restores the clean answer"],
  ["noise", "which state spoils it"],
] as const;

/** Clean and corrupted side by side; for each layer and token, how far its state alone moves the answer. */
export function PatchView({ id }: { id: string | undefined }) {
  useTopic("state");
  const [form, setForm] = useState<PatchForm>({ ...patchForm, ...draft.patch });
  const set = (change: Partial<PatchForm>) => setForm((before) => ({ ...before, ...change }));
  const { clean, corrupted, several, where } = form;
  const { problem, trying } = useTrying();
  const { query } = usePlace();
  const [one] = several ? firstPair(form) : [form];
  const tokens = useTokens(where === "aligned" || one === undefined ? [] : [one.clean, one.corrupted]);
  const unequal = !several && tokens !== undefined && tokens[0]?.length !== tokens[1]?.length;
  useEffect(() => {
    draft.patch = undefined;
  }, []);
  useAsked("patch_sweep", id, (asked) => setForm(patchFormOf(asked)));
  const run = () =>
    trying(async ({ go }) => {
      const job = await submit({ model: labModel(), ...patchRequest(form) });
      go(`/patch/${job}${location.search}`);
    });
  const rows = several ? 5 : 2;
  return (
    <div class="page">
      <h1>Patch</h1>
      <p class="soft">
        States of one prompt in the run of another. Choose prompts that differ in one thing alone and have the
        same number of tokens, or mark what stands for what.
      </p>
      <Form onSubmit={run} problem={problem}>
        <div class="twins">
          <Area label="Clean" rows={rows} value={clean} onChange={(clean) => set({ clean })} />
          <Area
            label="Corrupted"
            rows={rows}
            value={corrupted}
            placeholder="the same with one thing changed"
            onChange={(corrupted) => set({ corrupted })}
          />
        </div>
        <div class="row" role="group" aria-label="What is put in">
          <span>put in</span>
          {changedPoints.map((point) => (
            <Check
              key={point}
              checked={form.points.includes(point)}
              onChange={(on) =>
                set({
                  points: changedPoints.filter((other) =>
                    other === point ? on : form.points.includes(other),
                  ),
                })
              }
            >
              {points[point]}
            </Check>
          ))}
        </div>
        <p class="row">
          <LayersField value={form.layers} onChange={(layers) => set({ layers })} />
          {form.points.includes("head_out") && (
            <Field
              label="heads"
              class="layers"
              value={form.heads}
              placeholder="all"
              onChange={(heads) => set({ heads })}
            />
          )}
          <Choice label="at" value={where} options={places} onChange={(where) => set({ where })} />
          {where === "chosen" && (
            <Field
              label="tokens"
              class="layers"
              value={form.tokens}
              placeholder="0, 3, -1"
              onChange={(tokens) => set({ tokens })}
            />
          )}
          <Choice
            label="question"
            value={form.direction}
            options={questions}
            onChange={(direction) => set({ direction })}
          />
          <Check checked={form.controls} onChange={(controls) => set({ controls })}>
            random changes beside it
          </Check>
          <Check checked={several} onChange={(on) => set({ several: on })}>
            each line a pair, with intervals over them
          </Check>
          <button
            type="submit"
            class="main"
            disabled={
              known.state?.lab.ok !== true ||
              clean.trim() === "" ||
              corrupted.trim() === "" ||
              (unequal && where !== "aligned")
            }
          >
            Patch
          </button>
        </p>
        {where === "aligned" ? <Spans form={form} /> : tokens !== undefined && <Preview tokens={tokens} />}
        <RequestCode
          of="their tokens"
          request={() => (one === undefined ? [] : [one.clean, one.corrupted].map(tokensRequest))}
        />
      </Form>
      {id !== undefined && (
        <JobResult
          id={id}
          operation="patch_sweep"
          meanwhile={<Growing id={id} />}
          pick={["patch-map", "patch-heads"].map((figure) => ({
            figure,
            words: "shows this site's numbers",
            act: (_, row, map) => {
              const site = siteOf(map, row);
              if (site !== undefined) select(siteQuery(site));
            },
          }))}
        >
          {(findings) => (
            <>
              <Alignment result={findings.job.result} />
              <ChosenSite findings={findings} query={query} />
            </>
          )}
        </JobResult>
      )}
    </div>
  );
}

/** The tokens of a text, as the workbench's service asks for them. */
function tokensRequest(content: string): CodeRequest {
  const body = { content, add_special: true, parse_special: false, with_pieces: true };
  return serverRequest("/tokenize", body);
}

/** The first line of both, of which the tokens are shown; nothing while there are not as many of both. */
function firstPair(form: PatchForm) {
  try {
    return pairsOf(form);
  } catch {
    return [];
  }
}

/** The map, as far as it is computed. */
function Growing({ id }: { id: string }) {
  const growth = useGrowth(id);
  const figure = useMemo(() => (growth === undefined ? undefined : growingPatchMap(growth)), [growth]);
  if (figure === undefined) return null;
  return <FigureView figure={figure} name={`tapline-patch_sweep-${id.slice(0, 8)}-so-far`} />;
}
