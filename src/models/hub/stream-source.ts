import type { ByteSource } from "../../formats/gguf.js";

/** Reads the beginning of a stream by position, on demand. */
export class StreamSource implements ByteSource {
  readonly #chunks: Uint8Array[] = [];
  #received = 0;

  constructor(
    private readonly stream: AsyncGenerator<Uint8Array>,
    readonly size: number,
  ) {}

  async read(buffer: Buffer, position: number): Promise<number> {
    while (this.#received < Math.min(position + buffer.length, this.size)) {
      const { value, done } = await this.stream.next();
      if (done) break;
      this.#chunks.push(value);
      this.#received += value.length;
    }
    const whole = Buffer.concat(this.#chunks);
    return whole.copy(buffer, 0, position, position + buffer.length);
  }

  /** Closes the stream and its connection. */
  async close(): Promise<void> {
    await this.stream.return(undefined);
  }
}
