import { useEffect, useState } from "preact/hooks";

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

/** Goes to a view. */
export function go(path: string): void {
  if (path !== location.pathname + location.search) history.pushState(null, "", path);
  for (const tell of heard) tell();
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
  useEffect(() => {
    const tell = () => set(place());
    heard.add(tell);
    addEventListener("popstate", tell);
    return () => {
      heard.delete(tell);
      removeEventListener("popstate", tell);
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
