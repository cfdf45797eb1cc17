import { useLayoutEffect, useState } from "preact/hooks";

export const views = ["chat", "inspect", "patch", "steer", "probe", "features", "jobs", "models"] as const;
export type View = (typeof views)[number];

/** Where the page is: an address holds names of things and what is selected, never a text. */
export interface Place {
  view: View;
  id: string | undefined;
  query: URLSearchParams;
}

const heard = new Set<() => void>();

export function place(): Place {
  const [, view = "", id] = location.pathname.split("/");
  return {
    view: (views as readonly string[]).includes(view) ? (view as View) : "chat",
    id: id === undefined || id === "" ? undefined : decodeURIComponent(id),
    query: new URLSearchParams(location.search),
  };
}

/** How often somebody has gone somewhere. */
let moves = 0;
/** How often something was asked for, and the latest of these that was led to. */
let turns = 0;
let arrived = 0;

/** Goes to a view. */
export function go(path: string): void {
  moves += 1;
  show(path);
}

function show(path: string): void {
  if (path !== location.pathname + location.search) history.pushState(null, "", path);
  for (const tell of heard) tell();
}

/** The way on from what one asked for, which takes a moment. */
export interface Onward {
  go: typeof go;
  select: typeof select;
}

/** @returns ways on that lead nowhere once one has gone elsewhere: an answer that comes late takes nobody away */
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
    // Within the view, what was asked for meanwhile still leads on, and what was asked for before it does not lead back.
    if (turn < arrived) return;
    arrived = turn;
    show(path);
    if (place().view !== view) moves += 1;
  };
  return { go: unlessGone(arrive), select: unlessGone(select) };
}

/** Notes in the address what is selected. */
export function select(values: Record<string, string | number | undefined>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) query.delete(name);
    else query.set(name, String(value));
  }
  const text = query.size === 0 ? "" : `?${query}`;
  history.replaceState(null, "", location.pathname + text);
  for (const tell of heard) tell();
}

export function usePlace(): Place {
  const [now, set] = useState(place);
  // At once: what happened between the drawing and a later effect would be missed.
  useLayoutEffect(() => {
    const tell = () => set(place());
    const back = () => {
      moves += 1;
      tell();
    };
    heard.add(tell);
    addEventListener("popstate", back);
    return () => {
      heard.delete(tell);
      removeEventListener("popstate", back);
    };
  }, []);
  return now;
}

/** A link within the page; new tabs open it like any other. */
export function follow(event: MouseEvent): void {
  const link = event.currentTarget as HTMLAnchorElement;
  if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
