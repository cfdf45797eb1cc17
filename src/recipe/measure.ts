import { UserError } from "../contracts/index.js";
import type { Quantity, Reading } from "../contracts/recipe.js";
import { mean } from "../findings/numbers.js";

/** Results by step id: a Lab's result, or a serving model's answers. */
export type Results = ReadonlyMap<string, unknown>;

/** Computes a recipe's value from the results. @throws UserError if it is missing or not a number */
export function measure(value: Quantity, results: Results): number {
  if ("difference" in value) {
    const [a, b] = value.difference;
    return measure(a, results) - measure(b, results);
  }
  if ("mean" in value) return mean(value.mean.map((reading) => read(reading, results)));
  if ("same" in value) return same(value.same, results);
  return read(value, results);
}

/** The share of places at which two readings have equal texts or numbers. */
function same([a, b]: readonly [Reading, Reading], results: Results): number {
  const [one, other] = [found(a, results), found(b, results)];
  if (one.length === 0 || one.length !== other.length) {
    throw new UserError(
      `Steps ${a.step} and ${b.step} must have the same number of values to compare, got ${one.length} at ${a.path} and ${other.length} at ${b.path}.`,
    );
  }
  const counted = (value: unknown, { contains }: Reading) =>
    contains === undefined ? JSON.stringify(value) : numberOf(value, contains);
  const agreeing = one.filter((value, place) => counted(value, a) === counted(other[place], b));
  return agreeing.length / one.length;
}

function found({ step, path }: Reading, results: Results): unknown[] {
  return partsOf(path).reduce<unknown[]>(
    (values, part) => values.flatMap((value) => go(value, part)),
    [results.get(step)],
  );
}

function read(reading: Reading, results: Results): number {
  const { step, path, take = "mean", otherwise, contains, surprise = false } = reading;
  const values = found(reading, results);
  const numbers = values
    .map((value) => numberOf(value, contains))
    .map((number) => (surprise ? -Math.log(number) : number));
  if (numbers.length === 0) {
    if (otherwise !== undefined) return otherwise;
    throw new UserError(`The result of step ${step} has no value at ${path}.`);
  }
  const wrong = numbers.findIndex((number) => !Number.isFinite(number));
  if (wrong >= 0)
    throw new UserError(
      `The result of step ${step} has ${JSON.stringify(values[wrong])} at ${path}, which is not a number.`,
    );
  if (take === "min") return Math.min(...numbers);
  if (take === "max") return Math.max(...numbers);
  return mean(numbers);
}

/** Parts between slashes; parts in double quotes may contain slashes and spaces. */
export function partsOf(path: string): string[] {
  return (path.match(/(?:[^/"]|"[^"]*")+/g) ?? []).map((part) => part.replaceAll('"', ""));
}

function go(value: unknown, part: string): unknown[] {
  if (value === null || typeof value !== "object") return [];
  if (!Array.isArray(value)) {
    if (part === "*") return Object.values(value);
    return part in value ? [(value as Record<string, unknown>)[part]] : [];
  }
  if (part === "*") return value;
  if (part.indexOf("=") > 0) {
    return part.split(/&(?=[a-z_]+=)/).reduce<unknown[]>((entries, condition) => {
      const equals = condition.indexOf("=");
      const [field, wanted] = [condition.slice(0, equals), condition.slice(equals + 1)];
      return entries.filter((entry) => String((entry as Record<string, unknown>)?.[field]) === wanted);
    }, value);
  }
  const range = /^(-?\d+)?:(-?\d+)?$/.exec(part);
  if (range !== null) {
    const [from, to] = [range[1], range[2]].map((text) => (text === undefined ? undefined : Number(text)));
    return value.slice(from, to);
  }
  const index = /^-?\d+$/.test(part) ? Number(part) : Number.NaN;
  const entry = value.at(index);
  return Number.isNaN(index) || entry === undefined ? [] : [entry];
}

function numberOf(value: unknown, contains: Reading["contains"]): number {
  if (contains !== undefined) {
    if (typeof value !== "string") return Number.NaN;
    return Number([contains].flat().some((part) => value.includes(part)));
  }
  return typeof value === "number" ? value : Number.NaN;
}
