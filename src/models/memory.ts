import { totalmem } from "node:os";

/** What a model would take on one device, as the addon lays it out; bytes. */
export interface DeviceMemory {
  name: string;
  /** The machine's own memory. */
  host: boolean;
  free: number;
  total: number;
  weights: number;
  context: number;
  compute: number;
}

export interface MemoryVerdict {
  /** Bytes that model, context and buffers take. */
  needed: number;
  free: number;
  total: number;
  /** `tight`: more than is free now. `no`: more than there is. */
  fits: "yes" | "tight" | "no";
  /** What a person should know, unless it simply fits. */
  sentence: string;
}

/** Memory of this machine as this process may use it: a container's limit counts. */
export function hostMemory(): { free: number; total: number } {
  const limit = process.constrainedMemory() || Number.POSITIVE_INFINITY;
  return { free: process.availableMemory(), total: Math.min(totalmem(), limit) };
}

/**
 * Compares what a model takes with what is there, over all devices together: what does not fit on a GPU stays in
 * the machine's memory. Weights are mapped from the file, so that a model which is merely tight works, slowly.
 */
export function judgeMemory(devices: readonly DeviceMemory[], host = hostMemory()): MemoryVerdict {
  const sum = (value: (device: DeviceMemory) => number) =>
    devices.reduce((total, device) => total + value(device), 0);
  const parts = {
    weights: sum(({ weights }) => weights),
    context: sum(({ context }) => context),
    buffers: sum(({ compute }) => compute),
  };
  const needed = parts.weights + parts.context + parts.buffers;
  const others = devices.filter((device) => !device.host);
  const free = others.reduce((all, device) => all + device.free, host.free);
  const total = others.reduce((all, device) => all + device.total, host.total);
  const fits = needed > total ? "no" : needed > free ? "tight" : "yes";
  const breakdown = Object.entries(parts)
    .map(([name, bytes]) => `${name} ${size(bytes)}`)
    .join(", ");
  const sentence =
    fits === "yes"
      ? ""
      : `The model takes about ${size(needed)} (${breakdown}), and ` +
        (fits === "no"
          ? `there are ${size(total)} in all; a smaller quantisation, a smaller --ctx-size or --rpc would help, ` +
            "and --force loads it all the same."
          : `${size(free)} of ${size(total)} are free: it may be slow or be ended by the system.`);
  return { needed, free, total, fits, sentence };
}

function size(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.ceil(bytes / 1e6)} MB`;
}
