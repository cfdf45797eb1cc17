const block = 512;

export interface TarFile {
  /** Path inside the archive, ASCII, at most 100 characters. */
  name: string;
  bytes: Buffer;
}

/**
 * Streams files as a tar archive (POSIX ustar), holding one file in memory at a time. A truncated archive lacks its end
 * marker, which tar programs report.
 * @param time of all files, in Unix milliseconds
 */
export async function* tar(files: AsyncIterable<TarFile>, time: number): AsyncGenerator<Buffer> {
  for await (const { name, bytes } of files) {
    yield header(name, bytes.length, time);
    yield bytes;
    const over = bytes.length % block;
    if (over > 0) yield Buffer.alloc(block - over);
  }
  yield Buffer.alloc(2 * block);
}

function header(name: string, size: number, time: number): Buffer {
  if (!/^[\x21-\x7e]{1,100}$/.test(name))
    throw new RangeError(`Invalid file name for a tar archive: ${name}`);
  const bytes = Buffer.alloc(block);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, "0")}\0`;
  bytes.write(name, 0, "latin1");
  bytes.write(octal(0o644, 7), 100, "latin1");
  bytes.write(octal(0, 7), 108, "latin1");
  bytes.write(octal(0, 7), 116, "latin1");
  bytes.write(octal(size, 11), 124, "latin1");
  bytes.write(octal(Math.floor(time / 1000), 11), 136, "latin1");
  // The checksum is computed with spaces in its own field.
  bytes.write(" ".repeat(8), 148, "latin1");
  bytes.write("0", 156, "latin1");
  bytes.write("ustar\x0000", 257, "latin1");
  let sum = 0;
  for (const byte of bytes) sum += byte;
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return bytes;
}
