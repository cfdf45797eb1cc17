import { request as open } from "node:http";

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  bytes: Buffer;
  /** The parsed body of a JSON answer. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever comes
  body: any;
}

/** One HTTP request with exactly these headers, also those that fetch does not let anybody choose. */
export function send(
  url: string,
  method: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = open(url, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("error", reject);
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => {
        const bytes = Buffer.concat(chunks);
        const json = bytes.length > 0 && /json/.test(response.headers["content-type"] ?? "");
        resolve({
          status: response.statusCode as number,
          headers: response.headers,
          bytes,
          body: json ? JSON.parse(bytes.toString()) : null,
        });
      });
    });
    request.on("error", reject);
    const raw = typeof body === "string" || body instanceof Uint8Array;
    request.end(body === undefined ? undefined : raw ? body : JSON.stringify(body));
  });
}
