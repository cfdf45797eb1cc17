/** The data of each server-sent event in a byte stream. */
export async function* events(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let waiting = "";
  let data: string[] = [];
  for await (const chunk of chunks) {
    waiting += decoder.decode(chunk, { stream: true });
    const lines = waiting.split(/\r\n|\n|\r(?!$)/);
    waiting = lines.pop() as string;
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      if (line !== "" || data.length === 0) continue;
      yield data.join("\n");
      data = [];
    }
  }
}
