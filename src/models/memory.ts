import { totalmem } from "node:os";

/** Estimated memory of a model on one device, in bytes. */
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
  /** Bytes for model, context and buffers. */
  needed: number;
  free: number;
  total: number;
  /** `tight`: more than is free now. `no`: more than the total. */
  fits: "yes" | "tight" | "no";
  /** Explanation; empty if it fits. */
  sentence: string;
}

/** Memory available to this process, including a container's limit. */
export function hostMemory(): { free: number; total: number } {
  const limit = process.constrainedMemory() || Number.POSITIVE_INFINITY;
  return { free: process.availableMemory(), total: Math.min(totalmem(), limit) };
}

/**
 * Compares a model's memory with that of all devices together, since layers that do not fit on a GPU stay in host memory.
 * Weights are memory-mapped, so a tight model still works, but slowly.
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
      : `The model needs about ${size(needed)} (${breakdown}), but ` +
        (fits === "no"
          ? `there is only ${size(total)} in total; use a smaller quantization, a smaller --ctx-size or --rpc, ` +
            "or --force to load it anyway."
          : `only ${size(free)} of ${size(total)} is free: it may be slow, or the system may kill it.`);
  return { needed, free, total, fits, sentence };
}

function size(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.ceil(bytes / 1e6)} MB`;
}
