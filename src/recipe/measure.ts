import type { Result } from "../contracts/index.js";
import { UserError } from "../contracts/index.js";
import type { Quantity, Reading } from "../contracts/recipe.js";

/** What a step left, by its id. */
export type Results = ReadonlyMap<string, Result>;

/** The number that a recipe asks for. @throws UserError where the results hold no such number */
export function measure(value: Quantity, results: Results): number {
  if ("difference" in value) {
    const [a, b] = value.difference;
    return read(a, results) - read(b, results);
  }
  if ("mean" in value) return mean(value.mean.map((reading) => read(reading, results)));
  return read(value, results);
}

function read(reading: Reading, results: Results): number {
  const { step, path, take = "mean", otherwise, contains } = reading;
  const found = partsOf(path).reduce<unknown[]>(
    (values, part) => values.flatMap((value) => go(value, part)),
    [results.get(step)],
  );
  const numbers = found.map((value) => numberOf(value, contains));
  if (numbers.length === 0) {
    if (otherwise !== undefined) return otherwise;
    throw new UserError(`The result of step ${step} holds nothing at ${path}.`);
  }
  const wrong = numbers.findIndex((number) => !Number.isFinite(number));
  if (wrong >= 0)
    throw new UserError(`The result of step ${step} holds ${JSON.stringify(found[wrong])} at ${path}.`);
  if (take === "min") return Math.min(...numbers);
  if (take === "max") return Math.max(...numbers);
  return mean(numbers);
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

/** Parts between slashes; those in double quotes may hold slashes and spaces. */
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
  const equals = part.indexOf("=");
  if (equals > 0) {
    const [field, wanted] = [part.slice(0, equals), part.slice(equals + 1)];
    return value.filter((entry) => String((entry as Record<string, unknown>)?.[field]) === wanted);
  }
  const index = /^-?\d+$/.test(part) ? Number(part) : Number.NaN;
  const entry = value.at(index);
  return Number.isNaN(index) || entry === undefined ? [] : [entry];
}

function numberOf(value: unknown, contains: string | undefined): number {
  if (contains !== undefined)
    return typeof value === "string" ? Number(value.includes(contains)) : Number.NaN;
  return typeof value === "number" ? value : Number.NaN;
}
