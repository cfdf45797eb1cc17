import { crc32 } from "node:zlib";

/** An .npy file of float32 in C order, written by the format's page alone. */
export function npyFile(data: Float32Array, shape: readonly number[]): Buffer {
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': ${tuple}, }`;
  const header = Buffer.from(`${text.padEnd(118 - 1)}\n`);
  const length = Buffer.alloc(2);
  length.writeUInt16LE(header.length);
  return Buffer.concat([
    Buffer.from("\x93NUMPY\x01\x00", "latin1"),
    length,
    header,
    Buffer.from(data.buffer, data.byteOffset, data.byteLength),
  ]);
}

/** A zip archive of stored entries, as numpy.savez writes them. */
export function zipOf(arrays: Readonly<Record<string, Buffer>>): Buffer {
  return storedZip(Object.fromEntries(Object.entries(arrays).map(([name, data]) => [`${name}.npy`, data])));
}

/** A zip archive of stored files. */
export function storedZip(files: Readonly<Record<string, Buffer>>): Buffer {
  const parts: Buffer[] = [];
  const listed: Buffer[] = [];
  let at = 0;
  for (const [name, data] of Object.entries(files)) {
    const path = Buffer.from(name);
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt32LE(crc32(data), 10);
    fields.writeUInt32LE(data.length, 14);
    fields.writeUInt32LE(data.length, 18);
    fields.writeUInt16LE(path.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), fields, path, data]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(at, 10);
    listed.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x00", "latin1"), fields, tail, path]));
    parts.push(local);
    at += local.length;
  }
  const directory = Buffer.concat(listed);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(parts.length, 8);
  end.writeUInt16LE(parts.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...parts, directory, end]);
}
