/** The two sides of a comparison: ids in its address, and their names. */
import type { JobOf } from "../../contracts/job.js";
import { count } from "../../findings/numbers.js";
import { type Side, sideOfInspection } from "../../findings/side-by-side.js";
import { cut, oneLine } from "../../findings/text.js";
import type { ResultOf } from "../../operations/contracts.js";
import type { Reading } from "../wire.js";
import { shortModel } from "./model-name.js";

const jobPattern = /^[0-9a-f]{32}$/;
const readingPattern = /^[0-9a-f]{16}$/;

/** The run that an id in the address names: a job of the Lab, or a reading of the workbench. */
export function kindOf(id: string | undefined): "job" | "reading" | undefined {
  if (id === undefined) return undefined;
  return jobPattern.test(id) ? "job" : readingPattern.test(id) ? "reading" : undefined;
}

/** One of the two runs. */
export type Run = { job: JobOf<"inspect"> & { result: ResultOf<"inspect"> } } | { reading: Reading };

/** The two sides, each named by what distinguishes it from the other. */
export function sidesOf(one: Run, other: Run): [Side, Side] {
  const isWarm = temperatureOf(one) !== temperatureOf(other);
  const [first, second] = [one, other].map((run) => labels(run, isWarm)) as [Labels, Labels];
  const differing = ["model", "form", "settings", "text"] as const;
  const field = differing.find((name) => first[name] !== second[name]);
  const [before, after] = field === undefined ? ["first run", "second run"] : [first[field], second[field]];
  return [sideOf(one, before), sideOf(other, after)];
}

interface Labels {
  model: string;
  /** The model with its quantization, for files of the same name. */
  form: string;
  settings: string;
  text: string;
}

function temperatureOf(run: Run): number {
  return "reading" in run ? run.reading.temperature : 0;
}

function labels(run: Run, withTemperature: boolean): Labels {
  if ("reading" in run) {
    const { reading } = run;
    const model = shown(reading.model ?? "a model");
    return {
      ...{ model, form: model },
      settings: settingsOf(reading, withTemperature),
      text: quoted(reading.question),
    };
  }
  const { config, result } = run.job;
  const { requested_model: model, quantization } = result.provenance;
  const name = shortModel(model);
  return {
    ...{ model: shown(name), form: shown(`${name} (${quantization})`) },
    settings: "",
    text: quoted(config.prompt ?? result.tokens.join("")),
  };
}

/** A reading's settings in words. */
export function settingsOf(
  { profile, interventions, temperature }: Pick<Reading, "profile" | "interventions" | "temperature">,
  withTemperature = true,
): string {
  const what = [
    ...(profile === undefined ? [] : [`profile ${profile}`]),
    ...(interventions.length === 0 ? [] : [count(interventions.length, "intervention")]),
  ];
  if (what.length === 0) what.push("unmodified");
  return [...what, ...(withTemperature ? [`temperature ${temperature}`] : [])].join(", ");
}

function sideOf(run: Run, name: string): Side {
  if ("job" in run) return sideOfInspection(name, run.job.result);
  const { tokens, prompt, layers, answer, depth } = run.reading;
  return { name, tokens, prompt, layers, answer, depth, next: [] };
}

function shown(text: string): string {
  return cut(oneLine(text), 48);
}

function quoted(text: string): string {
  return `“${cut(oneLine(text), 40)}”`;
}
