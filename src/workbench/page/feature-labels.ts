/** Labels that a model has proposed: loaded once, and again after each change. */
import { useEffect, useState } from "preact/hooks";
import type { MachineLabel } from "../wire.js";
import { call } from "./session.js";
import { listen } from "./store.js";

/** By the dictionary's hash and the feature; see `labelKey`. */
export type Labels = Readonly<Record<string, MachineLabel>>;

export function useLabels(): Labels {
  const [labels, set] = useState<Labels>({});
  useEffect(() => {
    let over = false;
    const read = () => {
      call<{ labels: Labels }>("/api/labels").then(
        (found) => !over && set(found.labels),
        () => {},
      );
    };
    read();
    const stop = listen("library", read);
    return () => {
      over = true;
      stop();
    };
  }, []);
  return labels;
}
