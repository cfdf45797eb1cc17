import { recordResults, supportTitle, type Table } from "../../../scripts/docs/verification.js";
import { points } from "../../../src/native/index.js";
import { type Outcome, quantisations } from "./report.js";
import { graphTables } from "./wiring.js";

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
  { title: "linear", check: "attribution", key: "apart", worst: Math.max },
  { title: "neurons", check: "attribution", key: "ffn", worst: Math.max },
  { title: "closes", check: "attribution", key: "residual", worst: Math.max },
  { title: "graph", check: "attribution", key: "graph", worst: Math.max },
  { title: "features", check: "attribution", key: "replaced", worst: Math.max },
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

/** Which models lack which point, and how blocks differ from the usual form. */
function pointTables(outcomes: Outcome[]): Table[] {
  const held = outcomes.filter(({ verdict }) => verdict === "holds");
  const having = points.map((point) => {
    const count = held.filter(({ report }) => report?.points?.[point] === "").length;
    return [`\`${point}\``, `${count} of ${outcomes.length}`];
  });
  const forms = [
    ["parallel", "attention and MLP read the same input, so there is no `mid`"],
    ["normed", "a norm is applied before the result is added to the residual stream"],
    ["scaled", "the result is scaled before it is added"],
  ].map(([form, meaning]) => [
    meaning as string,
    names(held.filter(({ report }) => report?.form?.includes(form as string))),
  ]);
  const lacking = new Map<string, Outcome[]>();
  for (const outcome of held) {
    const reason =
      outcome.report?.points?.attn_out
        .replace(/^.* has no proven attn_out: block \d+ /, "a block ")
        .replace(/\.$/, "") ?? "";
    if (reason !== "") lacking.set(reason, [...(lacking.get(reason) ?? []), outcome]);
  }
  return [
    { title: "Hook points", head: ["Point", "Models that have it"], rows: having },
    { title: "Forms of blocks", head: ["Form", "Models"], rows: forms },
    {
      title: "No `attn_out` and `ffn_out`",
      head: ["Reason", "Models"],
      rows: [...lacking].map(([reason, models]) => [reason, names(models)]),
    },
  ];
}

/** Per model what it supports, for docs/reference/models.md. */
function supportTable(outcomes: Outcome[]): Table {
  const taking = new Set(takers(outcomes));
  const rows = outcomes.flatMap((outcome) => {
    const { model, verdict, report } = outcome;
    if (report === undefined || verdict !== "holds") return [];
    const has = [
      ...points.map((point) => report.points?.[point] === ""),
      report.lens === "",
      taking.has(outcome),
    ];
    return [[`\`${model}\``, `\`${report.architecture}\``, ...has.map((one) => (one ? "yes" : "no"))]];
  });
  const head = ["Model", "Architecture", ...points.map((point) => `\`${point}\``), "lens", "explain"];
  return { title: supportTitle, head, rows };
}

const names = (outcomes: readonly Outcome[]) => outcomes.map(({ model }) => `\`${model}\``).join(", ");

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

function liveTables(outcomes: Outcome[]): Table[] {
  const held = outcomes.filter(({ verdict }) => verdict === "holds");
  const worst = (["edited", "plain"] as const).map((key) => {
    const found = held.map(({ model, report }) => ({
      model,
      value: Math.max(...(report?.checks ?? []).flatMap(({ measured }) => measured?.[key] ?? [])),
    }));
    const { model, value } = found.sort((a, b) => b.value - a.value)[0] as { model: string; value: number };
    return [key, short(value), `\`${model}\``];
  });
  return [
    { title: "Worst figures", head: ["Answer", "Difference of a token's probability", "Model"], rows: worst },
    reasons(
      "Not compared",
      outcomes.filter(({ verdict }) => verdict !== "holds"),
    ),
  ];
}

const reasons = (title: string, outcomes: readonly Outcome[]): Table => ({
  title,
  head: ["Model", "Reason"],
  rows: outcomes.map(({ model, reason }) => [`\`${model}\``, reason]),
});

/** Stores the results for docs/contributing/verification. */
export function record(outcomes: Outcome[], which: "all" | "quantised" | "live"): void {
  const tables = { all: allTables, quantised: quantisedTables, live: liveTables }[which](outcomes);
  const of = (verdict: Outcome["verdict"]) => outcomes.filter((each) => each.verdict === verdict).length;
  recordResults(which === "all" ? "architectures" : which, {
    summary: `${of("holds")} of ${outcomes.length} hold, ${of("refused")} refused with a reason, ${of("failed")} failed.`,
    tables,
  });
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

function quantisedTables(outcomes: Outcome[]): Table[] {
  const rows = quantisations.map((type) => {
    const checks = outcomes.flatMap(({ model, report }) =>
      (report?.checks ?? []).filter(({ name }) => name === type).map((check) => ({ model, ...check })),
    );
    const worst = quantisedFigures.map((key) => {
      const largest = Math.max(0, ...checks.map(({ measured }) => measured?.[key] ?? 0));
      const model = checks.find(({ measured }) => measured?.[key] === largest)?.model;
      return `${short(largest)}${largest > 0 ? ` (${model})` : ""}`;
    });
    const refused = checks.filter(({ note }) => note !== undefined).map(({ model }) => model);
    return [type, ...worst, refused.join(", ") || "none"];
  });
  const head = ["Type", "Block outputs, worst", "Packed rows, worst", "Refused"];
  return [{ title: "Worst figures by type", head, rows }];
}

function allTables(outcomes: Outcome[]): Table[] {
  const held = outcomes.filter(({ verdict }) => verdict === "holds");
  const worst = columns.flatMap((column) => {
    const measured = held.flatMap(({ model, report }) => {
      const value = report?.checks.find(({ name }) => name === column.check)?.measured?.[column.key];
      const counts = column.check !== "sufficient" || report?.sidePath === "";
      return typeof value === "number" && counts ? [{ model, value }] : [];
    });
    if (measured.length === 0) return [];
    const value = column.worst(...measured.map((each) => each.value));
    const model = measured.find((each) => each.value === value)?.model ?? "";
    return [[column.title, String(measured.length), short(value), `\`${model}\``]];
  });
  const scaled = takers(outcomes).filter(({ report }) =>
    report?.checks.some(({ name, measured }) => name === "explain" && measured?.scale !== 1),
  );
  const usual = /^l_out-\d+$/;
  const odd = held.filter(({ report }) => !report?.tensorNames.every((name) => usual.test(name)));
  return [
    { title: "Worst figure of each check", head: ["Check", "Models", "Worst figure", "Model"], rows: worst },
    supportTable(outcomes),
    ...graphTables(outcomes),
    ...pointTables(outcomes),
    {
      title: "Vectors in place of token embeddings",
      head: ["Models", "Number"],
      rows: [
        ["accept them", `${takers(outcomes).length} of ${outcomes.length}`],
        ["scale token embeddings and not these vectors", names(scaled)],
      ],
    },
    reasons(
      "Refused",
      outcomes.filter(({ verdict }) => verdict === "refused"),
    ),
    {
      title: "Known paths around the block output",
      head: ["Model", "Path"],
      rows: held.flatMap(({ model, report }) =>
        report?.sidePath ? [[`\`${model}\``, report.sidePath]] : [],
      ),
    },
    {
      title: "Block outputs with another name than `l_out`",
      head: ["Model", "Last tensor"],
      rows: odd.map(({ model, report }) => [`\`${model}\``, `\`${report?.tensorNames.at(-1)}\``]),
    },
  ];
}
