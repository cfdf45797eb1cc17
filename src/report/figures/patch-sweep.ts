import type { PatchSweepResult } from "../../contracts/index.js";
import { patchPoints, patchStory, patchTokens, placedSites, sitesAt, visible } from "../../terminal/index.js";
import { type Figure, type Findings, figureOf, percent, signed } from "../figure.js";

/** Where one state moves the answer: layers over tokens, and each token's best. */
export function patchSweepFindings(result: PatchSweepResult): Findings {
  const [pair] = result.pairs;
  const of =
    pair === undefined || result.pairs.length > 1
      ? `the mean of ${result.pairs.length} pairs`
      : `${visible(pair.target_token)} less ${visible(pair.foil_token)}`;
  const base = result.direction === "denoise" ? result.corrupted : result.clean;
  const controls = result.sites.flatMap(({ control }) =>
    control === undefined ? [] : Math.abs(control.change),
  );
  return {
    summary: [
      patchStory(result),
      `Logit difference (${of}): ${figureOf(result.clean)} in the clean run, ${figureOf(result.corrupted)} in the corrupted one.`,
      `Controls: with a row of its own put back the patched run moves by ${figureOf(result.restored - base)}` +
        (controls.length === 0
          ? "."
          : `; random changes as long as the patch's move it by at most ${figureOf(Math.max(...controls))}.`),
    ],
    cautions: [
      result.direction === "denoise"
        ? "A state that restores the answer is enough for it where the rest of the run is corrupted. That the model needs it is another question: noise asks that one."
        : "A state that spoils the answer is needed for it. That it is enough is another question: denoise asks that one.",
      "What a patch moves is everything in which the two prompts differ at that place. Choose a corrupted prompt that differs in one thing alone.",
    ],
    parts: patchPoints(result).map((point) => map(result, point)),
  };
}

function map(result: PatchSweepResult, point: string): Figure {
  const all = placedSites(result);
  const sites = sitesAt(all, point);
  const only = point === "block_out";
  const tokens = patchTokens(result);
  const shares = all.some(({ recovery }) => recovery !== null);
  const name = (token: string | undefined) => (token === undefined ? "several" : visible(token));
  const at = new Map(sites.map((site) => [`${site.layer} ${site.column}`, site]));
  const details = sites.map((site) => {
    const { clean, corrupted } = tokens[site.column] as (typeof tokens)[number];
    return [
      `layer ${site.layer}${only ? "" : ` ${point}`}, token ${site.position}`,
      clean === corrupted
        ? `both prompts: ${name(clean)}`
        : `clean ${name(clean)}, corrupted ${name(corrupted)}`,
      ...(site.inside ? [] : ["nothing can change here"]),
      ...(site.recovery === null ? [] : [`recovery ${percent(site.recovery)}`]),
      ...(site.recovery_interval === undefined
        ? []
        : [
            `95 % interval ${percent(site.recovery_interval.low)} to ${percent(site.recovery_interval.high)}`,
          ]),
      `logit difference ${figureOf(site.logit_difference)} (${signed(site.change)})`,
      ...(site.change_length === null || site.row_length === null
        ? []
        : [`change ${figureOf(site.change_length)} of a row of ${figureOf(site.row_length)}`]),
      ...(site.control === undefined ? [] : [`random change: ${signed(site.control.change)}`]),
    ].join("\n");
  });
  return {
    id: only ? "patch-map" : `patch-map-${point.replace("_", "-")}`,
    title: `${shares ? "Recovery" : "Change"} by layer and token${only ? "" : `, ${point}`}`,
    description:
      (shares
        ? "How far one patched state alone moves the logit difference, from the run that is patched (0) to the run that the state is from (1). "
        : "How far one patched state alone moves the logit difference. ") +
      "Below each column the clean prompt's token, and under it the corrupted prompt's where they differ. Faint cells cannot change anything: nothing reads them, or both runs are the same there.",
    chart: {
      kind: "sites",
      columns: tokens.map(({ position, clean, corrupted }) => ({
        above: clean === undefined ? `token ${position}` : visible(clean),
        below: clean === corrupted ? "" : corrupted === undefined ? "…" : visible(corrupted),
      })),
      value: shares ? "recovery" : "change",
      legend: shares ? "recovery" : "change of the logit difference",
      least: shares ? 1 : 0,
    },
    columns: [
      { name: "layer", label: "layer" },
      { name: "position", label: "position" },
      { name: "column", label: "column" },
      { name: "clean", label: "clean token" },
      { name: "corrupted", label: "corrupted token" },
      { name: "recovery", label: "recovery" },
      { name: "logit_difference", label: "logit difference" },
      { name: "change", label: "change" },
      { name: "recovery_low", label: "recovery, interval from" },
      { name: "recovery_high", label: "to" },
      { name: "change_length", label: "length of the change" },
      { name: "row_length", label: "length of the row" },
      { name: "control_change", label: "change by a random vector" },
      { name: "inside", label: "can change anything" },
    ],
    rows: sites.map((site) => {
      const { clean, corrupted } = tokens[site.column] as (typeof tokens)[number];
      return [
        site.layer,
        site.position,
        site.column,
        clean === undefined ? null : visible(clean),
        corrupted === undefined ? null : visible(corrupted),
        site.recovery,
        site.logit_difference,
        site.change,
        site.recovery_interval?.low ?? null,
        site.recovery_interval?.high ?? null,
        site.change_length,
        site.row_length,
        site.control?.change ?? null,
        site.inside ? 1 : 0,
      ];
    }),
    details,
    table: {
      head: ["token", "clean", "corrupted", ...result.layers.map((layer) => `layer ${layer}`)],
      rows: tokens.map(({ position, clean, corrupted }, column) => [
        String(position),
        name(clean),
        name(corrupted),
        ...result.layers.map((layer) => {
          const site = at.get(`${layer} ${column}`);
          if (site === undefined) return "";
          return shares ? percent(site.recovery ?? 0) : signed(site.change);
        }),
      ]),
    },
  };
}
