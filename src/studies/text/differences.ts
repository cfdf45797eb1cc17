import type { StudyPackage } from "../../contracts/studies/index.js";

export interface Difference {
  /** JSON pointer, but with entries identified by their id. */
  place: string;
  before: string | null;
  after: string | null;
}

/** Differences between two versions of a study, by entry and field. */
export function differences(before: StudyPackage, after: StudyPackage): Difference[] {
  const found: Difference[] = [];
  const { entries: oldEntries, ...oldFields } = before;
  const { entries: newEntries, ...newFields } = after;
  compare("", oldFields, newFields, found);
  const oldById = new Map(oldEntries.map((entry) => [entry.id.toLowerCase(), entry]));
  const newIds = new Set(newEntries.map(({ id }) => id.toLowerCase()));
  for (const entry of newEntries) {
    compare(`/entries/${entry.id}`, oldById.get(entry.id.toLowerCase()), entry, found);
  }
  for (const entry of oldEntries) {
    if (!newIds.has(entry.id.toLowerCase())) compare(`/entries/${entry.id}`, entry, undefined, found);
  }
  const common = (list: StudyPackage["entries"], ids: (id: string) => boolean) =>
    list.map(({ id }) => id.toLowerCase()).filter(ids);
  const [oldOrder, newOrder] = [
    common(oldEntries, (id) => newIds.has(id)).join(" "),
    common(newEntries, (id) => oldById.has(id)).join(" "),
  ];
  if (oldOrder !== newOrder)
    found.push({ place: "/entries", before: "the order of the entries changed", after: null });
  return found;
}

function compare(place: string, before: unknown, after: unknown, found: Difference[]): void {
  if (isObject(before) && isObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      compare(`${place}/${key}`, before[key], after[key], found);
    }
  } else if (JSON.stringify(before) !== JSON.stringify(after)) {
    found.push({ place, before: shown(before), after: shown(after) });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function shown(value: unknown): string | null {
  if (value === undefined) return null;
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
