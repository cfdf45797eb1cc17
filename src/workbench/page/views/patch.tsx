import { useEffect, useMemo } from "preact/hooks";
import { type ChangedPoint, changedPoints, spanMarks } from "../../../contracts/names.js";
import type { Figure } from "../../../findings/figure.js";
import { growingPatchMap } from "../../../operations/patch_sweep/figures-growth.js";
import { draft } from "../draft.js";
import { labModel, serverRequest, submit, useConfig, useGrowth } from "../jobs.js";
import { type PatchForm, pairsOf, patchForm, patchFormOf, patchRequest } from "../patch-request.js";
import { rowOfSite, siteIn, siteOf, siteQuery } from "../patch-site.js";
import { select, usePlace } from "../router.js";
import type { CodeRequest } from "../scripts.js";
import { known, useTopic } from "../store.js";
import { Area, Check, Choice, Field, LayersField } from "./fields.js";
import { FigureView } from "./figure.js";
import { Fold } from "./fold.js";
import { Form, useFields, useTrying } from "./form.js";
import { JobResult, type Pick } from "./job-result.js";
import { SelectedSite, SiteCard } from "./patch-site.js";
import { Alignment, Preview, Spans, useTokens } from "./patch-tokens.js";
import { ScriptMenu } from "./request-code.js";

/** Labels of the points. */
const points: Record<ChangedPoint, string> = {
  block_out: "Block outputs",
  attn_out: "Attention outputs",
  ffn_out: "MLP outputs",
  ffn_in: "MLP inputs",
  mid: "Residual stream mid-block",
  block_in: "Residual stream into the block",
  head_out: "Single heads",
};

/** Labels of the positions. */
const places = [
  ["every", "every token"],
  ["aligned", `spans marked with ${spanMarks.join(" ")}`],
  ["chosen", "these tokens"],
] as const;

/** The effect of a click on a site, for screen readers. */
const picks = "shows this site's numbers";

const modes = [
  ["denoise", "restore the clean answer (denoising)"],
  ["noise", "break the clean answer (noising)"],
] as const;

/** Activation patching between two prompts, at every layer and token. */
export function PatchView({ id }: { id: string | undefined }) {
  useTopic("state");
  const { fields: form, set, bind } = useFields<PatchForm>(() => ({ ...patchForm, ...draft.patch }));
  const { clean, corrupted, several, where } = form;
  const { problem, trying } = useTrying();
  const { query } = usePlace();
  const [one] = several ? firstPair(form) : [form];
  const tokens = useTokens(where === "aligned" || one === undefined ? [] : [one.clean, one.corrupted]);
  const unequal = !several && tokens !== undefined && tokens[0]?.length !== tokens[1]?.length;
  useEffect(() => {
    draft.patch = undefined;
  }, []);
  useConfig("patch_sweep", id, (config) => set(patchFormOf(config)));
  const run = () =>
    trying(async ({ go }) => {
      const job = await submit({ model: labModel(), ...patchRequest(form) });
      go(`/patch/${job}${location.search}`);
    });
  const rows = several ? 5 : 2;
  return (
    <div class="page">
      <h1>Patch</h1>
      <Fold hasResult={id !== undefined}>
        <p class="soft">
          Activation patching: copy activations from one prompt into a run on another. Use prompts that differ
          in exactly one thing and have the same number of tokens, or mark matching spans with{" "}
          {spanMarks.join(" ")}.
        </p>
        <Form onSubmit={run} problem={problem}>
          <div class="twins">
            <Area label="Clean" rows={rows} {...bind("clean")} />
            <Area
              label="Corrupted"
              rows={rows}
              placeholder="the clean prompt with one thing changed"
              {...bind("corrupted")}
            />
          </div>
          <div class="row" role="group" aria-label="What to patch">
            <span>What to patch</span>
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
          <div class="row">
            <LayersField {...bind("layers")} />
            {form.points.includes("head_out") && (
              <Field label="Heads" class="layers" placeholder="all" {...bind("heads")} />
            )}
            <Choice label="Positions" options={places} {...bind("where")} />
            {where === "chosen" && (
              <Field label="Tokens" class="layers" placeholder="0, 3, -1" {...bind("tokens")} />
            )}
            <Choice label="Mode" options={modes} {...bind("direction")} />
            <Check checked={form.controls} onChange={(controls) => set({ controls })}>
              Include random control
            </Check>
            <Check checked={several} onChange={(on) => set({ several: on })}>
              Multiple pairs, one per line (adds confidence intervals)
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
            <ScriptMenu
              of="tokenize"
              request={() => (one === undefined ? [] : [one.clean, one.corrupted].map(tokensRequest))}
            />
          </div>
          {where === "aligned" ? <Spans form={form} /> : tokens !== undefined && <Preview tokens={tokens} />}
        </Form>
      </Fold>
      {id !== undefined && (
        <JobResult
          id={id}
          operation="patch_sweep"
          meanwhile={<Growing id={id} query={query} />}
          pick={["patch-map", "patch-heads"].map(
            (figure): Pick<"patch_sweep"> => ({
              figure,
              words: picks,
              selected: (_, map) => selectedIn(map, query),
              detail: (findings) => <SelectedSite findings={findings} query={query} />,
              act: (_, row, map) => selectSite(map, row),
            }),
          )}
        >
          {(findings) => <Alignment result={findings.job.result} />}
        </JobResult>
      )}
    </div>
  );
}

/** The workbench's request for the tokens of a text. */
function tokensRequest(content: string): CodeRequest {
  const body = { content, add_special: true, parse_special: false, with_pieces: true };
  return serverRequest("/tokenize", body);
}

/** The first pair, whose tokens are shown; empty while the numbers of lines differ. */
function firstPair(form: PatchForm) {
  try {
    return pairsOf(form);
  } catch {
    return [];
  }
}

/** The partial map of a running job; a site selected in it stays selected in the result. */
function Growing({ id, query }: { id: string; query: URLSearchParams }) {
  const growth = useGrowth(id);
  const figure = useMemo(() => (growth === undefined ? undefined : growingPatchMap(growth)), [growth]);
  if (figure === undefined) return null;
  const row = selectedIn(figure, query);
  return (
    <FigureView
      figure={figure}
      name={`tapline-patch_sweep-${id.slice(0, 8)}-so-far`}
      picks={picks}
      onPick={(at) => selectSite(figure, at)}
      selected={row}
      detail={row !== undefined && <SiteCard detail={figure.details[row]} />}
    />
  );
}

/** The row of a map that has the site in the address. */
function selectedIn(map: Figure, query: URLSearchParams): number | undefined {
  const site = siteIn(query);
  return site === undefined ? undefined : rowOfSite(map, site);
}

function selectSite(map: Figure, row: number): void {
  const site = siteOf(map, row);
  if (site !== undefined) select(siteQuery(site));
}
