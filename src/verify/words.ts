import type { Check, Verification } from "./run.js";

/** The failed checks, one sentence each. */
export function failures({ checks }: Pick<Verification, "checks">): string[] {
  return checks.filter(({ ok }) => !ok).map(failure);
}

export const failure = ({ model, place, check, problem }: Check): string =>
  `${model}, ${check} (${place}): ${problem.replace(/\.$/, "")}.`;

/** A result in one line, to share. */
export function verificationLine(result: Verification): string {
  const { tapline, addon, machine, models, places, checks, seconds } = result;
  const failed = checks.filter(({ ok }) => !ok);
  const [first] = failed;
  const verdict =
    first === undefined
      ? `${checks.length} checks of ${models.length} architectures pass`
      : `${failed.length} of ${checks.length} checks FAIL, the first: ${first.model}, ${first.check} (${first.place})`;
  return [
    `tapline ${tapline} verify: ${verdict}`,
    `${machine.platform}-${machine.arch}, ${machine.processor}${machine.devices.map((name) => ` + ${name}`).join("")}`,
    `llama.cpp ${addon.llama_cpp} for ${addon.backend}, ${addon.variant}, ${places.join(", ")}`,
    `${new Date(result.created * 1000).toISOString().slice(0, 10)}, ${seconds.toFixed(0)} s`,
  ].join(" | ");
}
