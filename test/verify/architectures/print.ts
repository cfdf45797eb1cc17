import { readFile, writeFile } from "node:fs/promises";
import { points } from "../../../src/native/index.js";
import { type Outcome, quantisations } from "./report.js";

/** Figures in the table: check, its measurement, and whether the largest or the smallest is the worst. */
const columns = [
  { title: "sums", check: "values", key: "sumOfAbsolute", worst: Math.max },
  { title: "prefixes", check: "prefixes", key: "largest", worst: Math.max },
  { title: "effect", check: "causal", key: "smallest", worst: Math.min },
  { title: "patched", check: "sufficient", key: "largest", worst: Math.max },
  { title: "packed", check: "packed", key: "largest", worst: Math.max },
  { title: "chunked", check: "chunked", key: "largest", worst: Math.max },
  { title: "points", check: "points", key: "largest", worst: Math.max },
  { title: "attends", check: "attention", key: "largest", worst: Math.max },
  { title: "routes", check: "routing", key: "largest", worst: Math.max },
  { title: "lens", check: "lens", key: "largest", worst: Math.max },
  { title: "sweep", check: "sweep", key: "largest", worst: Math.max },
  { title: "patches", check: "patches", key: "largest", worst: Math.max },
] as const;

type Column = (typeof columns)[number];

export function tableHead(): string {
  const titles = columns.map(({ title }) => title.padStart(8)).join(" ");
  return `${"model".padEnd(24)} blocks ${"last tensor".padEnd(24)} ${titles}   verdict`;
}

export function tableRow({ model, verdict, reason, report }: Outcome): string {
  if (!report || verdict === "refused") return `${model.padEnd(24)} ${verdict}: ${reason}`;
  const figures = columns.map((column) => figure(report, column).padStart(8)).join(" ");
  const name = (report.tensorNames.at(-1) ?? "").padEnd(24);
  const note = [reason, report.sidePath].filter((text) => text !== "").join("; ");
  const blocks = String(report.nLayer).padStart(6);
  return `${model.padEnd(24)} ${blocks} ${name} ${figures}   ${verdict}${note === "" ? "" : `: ${note}`}`;
}

function figure(report: NonNullable<Outcome["report"]>, { check, key }: Column): string {
  const found = report.checks.find(({ name }) => name === check);
  const value = found?.measured?.[key];
  return value === undefined || value === null ? "-" : short(value);
}

function short(value: number): string {
  return value === 0 ? "0" : value.toExponential(1);
}

export function summary(outcomes: Outcome[]): string {
  const of = (verdict: Outcome["verdict"]) => outcomes.filter((each) => each.verdict === verdict);
  const lines = [
    `${of("holds").length} of ${outcomes.length} hold, ${of("refused").length} refused with a sentence, ` +
      `${of("failed").length} failed.`,
  ];
  for (const { model, reason } of [...of("failed"), ...of("refused")]) lines.push(`  ${model}: ${reason}`);
  lines.push(...pointLines(outcomes).map((line) => `  ${line}`));
  return lines.join("\n");
}

/** Of each point, how many models have it. */
function pointLines(outcomes: Outcome[]): string[] {
  const held = outcomes.filter(({ verdict, report }) => verdict === "holds" && report?.points !== undefined);
  if (held.length === 0) return [];
  const lines = points.map((point) => {
    const count = held.filter(({ report }) => report?.points?.[point] === "").length;
    return `${point}: ${count} of ${outcomes.length} have it.`;
  });
  return [...lines, `rows in a token's place: ${takers(outcomes).length} of ${outcomes.length} take them.`];
}

/** Models that take a row where a token's embedding stands. */
function takers(outcomes: Outcome[]): Outcome[] {
  return outcomes.filter(({ report }) =>
    report?.checks.some(({ name, measured }) => name === "explain" && measured?.scale !== undefined),
  );
}

/** Who lacks which point, and how blocks differ from the usual form. */
function pointsMarkdown(outcomes: Outcome[]): string[] {
  const held = outcomes.filter(({ verdict }) => verdict === "holds");
  const lines = ["", "| Point | Models that have it |", "| --- | --- |"];
  for (const point of points) {
    const count = held.filter(({ report }) => report?.points?.[point] === "").length;
    lines.push(`| \`${point}\` | ${count} of ${outcomes.length} |`);
  }
  for (const [form, what] of [
    ["parallel", "Attention and MLP read the same input, so that there is no `mid`"],
    ["normed", "What is added to the stream has gone through a norm"],
    ["scaled", "What is added is scaled"],
  ] as const) {
    const names = held
      .filter(({ report }) => report?.form?.includes(form))
      .map(({ model }) => `\`${model}\``);
    lines.push("", `${what}: ${names.join(", ")}.`);
  }
  const reasons = new Map<string, string[]>();
  for (const { model, report } of held) {
    const reason = report?.points?.attn_out.replace(/^.* has no proven attn_out: block \d+ /, "") ?? "";
    if (reason !== "") reasons.set(reason, [...(reasons.get(reason) ?? []), `\`${model}\``]);
  }
  lines.push("", "Without `attn_out` and `ffn_out`:", "");
  for (const [reason, names] of reasons) lines.push(`- a block ${reason} ${names.join(", ")}`);
  return lines;
}

const liveFigures = ["edited", "plain", "effect"] as const;

export function liveHead(): string {
  return `${"model".padEnd(24)} ${liveFigures.map((key) => key.padStart(8)).join(" ")}   verdict`;
}

/** The worst of all layers: the largest difference, the smallest effect. */
export function liveRow({ model, verdict, reason, report }: Outcome): string {
  const figures = liveFigures.map((key) => {
    const values = (report?.checks ?? []).flatMap(({ measured }) => measured?.[key] ?? []);
    const worst = key === "effect" ? Math.min(...values) : Math.max(...values);
    return (values.length === 0 ? "-" : short(worst)).padStart(8);
  });
  return `${model.padEnd(24)} ${figures.join(" ")}   ${verdict}${reason === "" ? "" : `: ${reason}`}`;
}

function liveMarkdown(outcomes: Outcome[]): string {
  const held = outcomes.filter(({ verdict }) => verdict === "holds");
  const worst = (key: "edited" | "plain") => {
    const found = held.map(({ model, report }) => ({
      model,
      value: Math.max(...(report?.checks ?? []).flatMap(({ measured }) => measured?.[key] ?? [])),
    }));
    const { model, value } = found.sort((a, b) => b.value - a.value)[0] as { model: string; value: number };
    return `| ${key}, a token's probability off by | ${short(value)} | ${model} |`;
  };
  const lines = [
    summary(outcomes).split("\n")[0] ?? "",
    "",
    "| Answer | Worst figure | Model |",
    "| --- | --- | --- |",
  ];
  lines.push(worst("edited"), worst("plain"), "", "Not served so:", "");
  for (const { model, reason } of outcomes.filter(({ verdict }) => verdict !== "holds")) {
    lines.push(`- \`${model}\`: ${reason}`);
  }
  return lines.join("\n");
}

/** Replaces what stands between the two markers in the document. */
export async function record(
  path: string,
  outcomes: Outcome[],
  which: "all" | "quantised" | "live",
): Promise<void> {
  const section = which === "all" ? "architectures" : which;
  const [from, to] = [`<!-- ${section}: begin -->`, `<!-- ${section}: end -->`];
  const text = await readFile(path, "utf8");
  const begin = text.indexOf(from);
  const end = text.indexOf(to);
  if (begin < 0 || end < begin) throw new Error(`${path} lacks the markers ${from} and ${to}.`);
  const head = text.slice(0, begin + from.length);
  const written = { all: markdown, quantised: quantisedMarkdown, live: liveMarkdown }[which](outcomes);
  await writeFile(path, `${head}\n${written}\n${text.slice(end)}`);
}

/** Off by at most, of block outputs and of packed rows, by type. */
const quantisedFigures = ["block", "packed"] as const;

export function quantisedHead(): string {
  const titles = quantisations.flatMap((type) =>
    quantisedFigures.map((key) => `${type} ${key}`.padStart(12)),
  );
  return `${"model".padEnd(24)} ${titles.join(" ")}   verdict`;
}

export function quantisedRow({ model, verdict, reason, report }: Outcome): string {
  const figures = quantisations.flatMap((type) => {
    const found = report?.checks.find(({ name }) => name === type);
    return quantisedFigures.map((key) => {
      const value = found?.measured?.[key];
      return (value === undefined ? (found?.note === undefined ? "-" : "refused") : short(value)).padStart(
        12,
      );
    });
  });
  return `${model.padEnd(24)} ${figures.join(" ")}   ${verdict}${reason === "" ? "" : `: ${reason}`}`;
}

function quantisedMarkdown(outcomes: Outcome[]): string {
  const lines = [
    summary(outcomes).split("\n")[0] ?? "",
    "",
    "| Type | Block outputs, worst | Packed rows, worst | Refused |",
    "| --- | --- | --- | --- |",
  ];
  for (const type of quantisations) {
    const checks = outcomes.flatMap(({ model, report }) =>
      (report?.checks ?? []).filter(({ name }) => name === type).map((check) => ({ model, ...check })),
    );
    const worst = quantisedFigures.map((key) => {
      const largest = Math.max(0, ...checks.map(({ measured }) => measured?.[key] ?? 0));
      const model = checks.find(({ measured }) => measured?.[key] === largest)?.model;
      return `${short(largest)}${largest > 0 ? ` (${model})` : ""}`;
    });
    const refused = checks.filter(({ note }) => note !== undefined).map(({ model }) => model);
    lines.push(`| ${type} | ${worst.join(" | ")} | ${refused.join(", ") || "none"} |`);
  }
  return lines.join("\n");
}

function markdown(outcomes: Outcome[]): string {
  const held = outcomes.filter(({ verdict }) => verdict === "holds");
  const lines = [
    summary(outcomes).split("\n")[0] ?? "",
    "",
    "| Check | Worst figure | Model |",
    "| --- | --- | --- |",
  ];
  for (const column of columns) {
    const measured = held.flatMap(({ model, report }) => {
      const value = report?.checks.find(({ name }) => name === column.check)?.measured?.[column.key];
      const counts = column.check !== "sufficient" || report?.sidePath === "";
      return typeof value === "number" && counts ? [{ model, value }] : [];
    });
    const worst = column.worst(...measured.map(({ value }) => value));
    const model = measured.find(({ value }) => value === worst)?.model ?? "";
    lines.push(`| ${column.title} (${measured.length} models) | ${short(worst)} | ${model} |`);
  }
  lines.push(...pointsMarkdown(outcomes));
  const scaled = takers(outcomes).filter(({ report }) =>
    report?.checks.some(({ name, measured }) => name === "explain" && measured?.scale !== 1),
  );
  lines.push(
    "",
    `A row in a token's place is taken by ${takers(outcomes).length} of ${outcomes.length}; of these ` +
      `${scaled.map(({ model }) => `\`${model}\``).join(", ")} multiply what is typed, and a row not.`,
  );
  lines.push("", "Refused:", "");
  for (const { model, reason } of outcomes.filter(({ verdict }) => verdict === "refused")) {
    lines.push(`- \`${model}\`: ${reason}`);
  }
  lines.push("", "With a path beside the block output, by design:", "");
  for (const { model, report } of held) {
    if (report?.sidePath) lines.push(`- \`${model}\`: ${report.sidePath}.`);
  }
  const usual = /^l_out-\d+$/;
  const odd = held.filter(({ report }) => !report?.tensorNames.every((name) => usual.test(name)));
  lines.push("", "Whose block outputs are not the tensors named `l_out`:", "");
  for (const { model, report } of odd) lines.push(`- \`${model}\`: \`${report?.tensorNames.at(-1)}\``);
  return lines.join("\n");
}
