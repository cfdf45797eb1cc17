import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ports that systems hand out by themselves, so that nobody gets it who did not ask for it. */
const [first, count] = [20_000, 12_000];

/** A port that is free and stays so until the test takes it, for a service that must know it beforehand. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = first + Math.floor(Math.random() * count);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
