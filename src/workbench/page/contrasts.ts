import { useEffect } from "preact/hooks";
import type { ContrastReady, ContrastStatus } from "../wire.js";
import { call, post } from "./session.js";
import { changed, known, useTopic } from "./store.js";
import { type Edit, newEdit } from "./views/edits.js";

/** Sets that the user has chosen and whose direction is still being made. */
export const wanted = new Set<string>();

/** The contrast sets on the served model; undefined while loading. */
export function useContrasts(): ContrastStatus[] | undefined {
  useTopic("contrasts");
  const { server } = known.state ?? {};
  // Other models have other directions.
  useEffect(() => {
    if (server?.ok !== true) return;
    call<{ contrasts: ContrastStatus[] }>("/api/contrasts").then(takeContrasts, () => {});
  }, [server?.ok, server?.model]);
  return known.contrasts;
}

/** Starts to make a set's direction. @throws Refusal */
export async function makeContrast(name: string): Promise<void> {
  wanted.add(name);
  try {
    takeContrasts(await post<{ contrasts: ContrastStatus[] }>("/api/contrasts", { name }));
  } catch (error) {
    wanted.delete(name);
    throw error;
  }
}

function takeContrasts({ contrasts }: { contrasts: ContrastStatus[] }): void {
  known.contrasts = contrasts;
  changed("contrasts");
}

/** The slider of a set's direction at its measured strength. */
export function editOfContrast({ vector, layer, range }: ContrastReady): Edit {
  const edit = newEdit("steer", layer, vector);
  return { ...edit, positions: "last", strength: range?.start ?? strengthWithoutRange };
}

/** For a direction that broke the language at every measured strength. */
const strengthWithoutRange = 0.1;

/** The strongest value of a set's slider. */
export function mostStrength({ range }: ContrastReady): number {
  return range === null ? 0.3 : Math.ceil(range.to * 1.3 * 20) / 20;
}

/** Where a direction works on this model, as a sentence. */
export function rangeSentence({ range, measured, layer }: ContrastReady): string {
  const count = measured[0]?.of ?? 0;
  const where = `Measured on ${count} other questions at layer ${layer}`;
  if (range === null) return "On this model, every measured strength broke the language.";
  const fluent = `the text stays fluent up to ${range.to}`;
  if (range.from === null) {
    return `${where}: no strength gave the intended answer, and ${fluent}.`;
  }
  const at = measured.find(({ strength }) => strength === range.start);
  return `${where}: at ${range.start}, ${at?.both} of ${at?.of} answers are as intended and fluent; ${fluent}.`;
}

/** What the random control did at the same strength, as a sentence. */
export function controlSentence({ control }: ContrastReady): string {
  if (control === null) return "";
  const { strength, expected, of } = control;
  return `Control, a random direction of the same norm at ${strength}: ${expected} of ${of} answers as intended.`;
}
