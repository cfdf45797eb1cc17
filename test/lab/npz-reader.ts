import { spawnSync } from "node:child_process";
import { crc32 } from "node:zlib";
import { parse } from "npyjs";
import { pythonWith } from "../support/python.js";

export interface NpzEntry {
  shape: number[];
  data: Float64Array;
}

/** Reads an .npz of stored arrays of numbers through its central directory, checking every CRC. */
export function readNpz(file: Buffer): Map<string, NpzEntry> {
  const end = file.lastIndexOf(Buffer.from("PK\x05\x06", "latin1"));
  if (end === -1) throw new Error("no end of central directory");
  const arrays = new Map<string, NpzEntry>();
  let central = file.readUInt32LE(end + 16);
  for (let index = 0; index < file.readUInt16LE(end + 10); index++) {
    const size = file.readUInt32LE(central + 20);
    const nameLength = file.readUInt16LE(central + 28);
    const local = file.readUInt32LE(central + 42);
    const name = file.toString("utf8", central + 46, central + 46 + nameLength);
    const start = local + 30 + file.readUInt16LE(local + 26) + file.readUInt16LE(local + 28);
    const bytes = file.subarray(start, start + size);
    for (const [at, from] of [[local + 14, "local"] as const, [central + 16, "central"] as const]) {
      if (file.readUInt32LE(at) !== crc32(bytes)) throw new Error(`${name}: the ${from} CRC does not match`);
    }
    if (file.toString("utf8", local + 30, local + 30 + nameLength) !== name) throw new Error("names differ");
    const { shape, data, dtype, fortranOrder } = parse(new Uint8Array(bytes).buffer);
    if (!["f4", "f8", "i4"].includes(dtype) || fortranOrder)
      throw new Error(`${name}: ${dtype}, ${fortranOrder}`);
    arrays.set(name.replace(/\.npy$/, ""), { shape, data: Float64Array.from(data as Float32Array) });
    central += 46 + nameLength + file.readUInt16LE(central + 30) + file.readUInt16LE(central + 32);
  }
  return arrays;
}

/** What numpy makes of a file; null where no Python with numpy is found. */
export function readNpzWithNumpy(
  path: string,
): Record<string, { shape: number[]; dtype: string; sum: number }> | null {
  const python = pythonWith("numpy");
  if (python === undefined) return null;
  const program =
    "import json, sys, numpy as np\n" +
    "z = np.load(sys.argv[1])\n" +
    "print(json.dumps({k: dict(shape=z[k].shape, dtype=str(z[k].dtype), " +
    "sum=float(z[k].astype('f8').sum())) for k in z.files}))";
  const { stdout, stderr, status } = spawnSync(python, ["-c", program, path], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}
