import type { Budget, CheckAlarm, CheckResult } from "../contracts/budget.js";

const quoted = (text: string) => `“${text.replaceAll("\n", "\\n")}”`;
const figure = (value: number | null) => (value === null ? "not a finite number" : value.toPrecision(3));

/** A prompt's text, shortened. */
function promptText({ prompts }: Pick<Budget, "prompts">, index: number): string {
  const { text, chat = "" } = prompts[index] as Budget["prompts"][number];
  const whole = text ?? chat;
  return quoted(whole.length > 60 ? `${whole.slice(0, 59)}…` : whole);
}

/** What a reading is, with its place. */
function readingName({
  kind,
  name,
  layer,
}: Pick<NonNullable<CheckAlarm["reading"]>, "kind" | "name" | "layer">) {
  return kind === "next" ? "log-probability of the next token" : `${kind} ${name} at block ${layer}`;
}

/** Where two models part on one prompt. */
export function alarmText(budget: Pick<Budget, "prompts">, alarm: CheckAlarm): string {
  const { what, profile, prompt, token, text, got = "", block, reading, starts } = alarm;
  const where = `prompt ${prompt + 1} ${promptText(budget, prompt)}${profile === null ? "" : ` with the profile ${profile}`}, token ${token + 1} ${quoted(text)}`;
  if (what === "tokens")
    return `${where}: the other model has ${got === "" ? "no token" : quoted(got)} there`;
  const parts = [
    ...(block
      ? [
          `block ${block.layer} differs by ${figure(block.deviation)} of its norm (allowed: ${figure(block.threshold)})`,
        ]
      : []),
    ...(reading
      ? [
          `${readingName(reading)} differs by ${figure(reading.deviation)} (allowed: ${figure(reading.threshold)})` +
            (reading.token === token ? "" : ` at token ${reading.token + 1}`),
        ]
      : []),
  ];
  const later = starts !== undefined && (starts.token !== token || starts.block !== block?.layer);
  const from = later
    ? ` (smaller differences start at token ${starts.token + 1}, block ${starts.block})`
    : "";
  return `${where}: ${parts.join("; ")}${from}`;
}

const shown = 10;

/** A result as text: the verdict, changed items, and where the models part. */
export function checkText(budget: Pick<Budget, "prompts">, result: CheckResult): string {
  const { model, against, alarms, changed, checks, greatest } = result;
  const pair = `${model.id} (${model.quantization}) and ${against.id} (${against.quantization})`;
  const [first] = alarms;
  return [
    first === undefined
      ? `${pair} agree: ${checks} comparisons; the largest difference is ${figure(greatest)} times its threshold.`
      : `${pair} first differ at ${alarmText(budget, first)}.`,
    ...changed.map(
      ({ kind, name }) => `The ${kind} ${name} differs from the budget's; the saved one was used.`,
    ),
    ...alarms.slice(1, shown).map((alarm) => `  ${alarmText(budget, alarm)}`),
    ...(alarms.length > shown ? [`  and ${alarms.length - shown} more`] : []),
  ].join("\n");
}
