import { useLayoutEffect, useState } from "preact/hooks";

export const views = [
  "chat",
  "inspect",
  "compare",
  "patch",
  "graph",
  "steer",
  "probe",
  "features",
  "drift",
  "jobs",
  "session",
  "models",
] as const;
export type View = (typeof views)[number];
/** An address that leads nowhere. */
export const missing = "missing";

/** The place in the page: addresses contain ids and selections, never texts. */
export interface Place {
  view: View | typeof missing;
  id: string | undefined;
  query: URLSearchParams;
}

const listeners = new Set<() => void>();

export function place(): Place {
  const [, view = "", id, ...more] = location.pathname.split("/");
  return {
    view: viewOf(view, more),
    id: id === undefined || id === "" ? undefined : decoded(id),
    query: new URLSearchParams(location.search),
  };
}

function viewOf(name: string, more: readonly string[]): Place["view"] {
  if (name === "") return "chat";
  return more.length === 0 && (views as readonly string[]).includes(name) ? (name as View) : missing;
}

/** A part of the address; a malformed escape stays as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Counts the user's navigations. */
let moves = 0;
/** Counts actions, and the latest action that has navigated. */
let turns = 0;
let arrived = 0;

export function go(path: string): void {
  moves += 1;
  show(path);
}

function show(path: string): void {
  if (path !== location.pathname + location.search) history.pushState(null, "", path);
  for (const notify of listeners) notify();
}

/** Navigation at the end of an action that takes a while. */
export interface Onward {
  go: typeof go;
  select: typeof select;
}

/** @returns navigation that does nothing once the user has gone elsewhere */
export function onward(): Onward {
  const asked = moves;
  const { view } = place();
  turns += 1;
  const turn = turns;
  const unlessGone =
    <T>(lead: (to: T) => void) =>
    (to: T) => {
      if (moves === asked) lead(to);
    };
  const arrive = (path: string) => {
    // Within a view, a later action may still navigate, and an earlier one must not navigate back.
    if (turn < arrived) return;
    arrived = turn;
    show(path);
    if (place().view !== view) moves += 1;
  };
  return { go: unlessGone(arrive), select: unlessGone(select) };
}

/** Puts a selection into the address. */
export function select(values: Record<string, string | number | undefined>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) query.delete(name);
    else query.set(name, String(value));
  }
  const text = query.size === 0 ? "" : `?${query}`;
  history.replaceState(null, "", location.pathname + text);
  for (const notify of listeners) notify();
}

export function usePlace(): Place {
  const [now, set] = useState(place);
  // A layout effect: a later one would miss changes in between.
  useLayoutEffect(() => {
    const notify = () => set(place());
    const back = () => {
      moves += 1;
      notify();
    };
    listeners.add(notify);
    addEventListener("popstate", back);
    return () => {
      listeners.delete(notify);
      removeEventListener("popstate", back);
    };
  }, []);
  return now;
}

/** Follows a link within the page, unless it was opened in a new tab or window. */
export function follow(event: MouseEvent): void {
  const link = event.currentTarget as HTMLAnchorElement;
  if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
