import { readFile } from "node:fs/promises";
import { Lab, ServingModel, TaplineError } from "../../client/index.js";
import { Transport } from "../../client/transport.js";
import { ports } from "../../contracts/limits.js";
import { PortInUse, UserError } from "../../contracts/user-error.js";
import { ProgressLine } from "../../terminal/index.js";
import { keyPath, linkPath, type ModelHost, startWorkbench } from "../../workbench/index.js";
import { isLab } from "../lab-session.js";
import { openPrivately } from "../open-browser.js";
import { OwnServer } from "../own-server.js";
import { answers, greetingMs, usualLab } from "../service-address.js";

export interface WorkbenchRunOptions {
  /** Model for a temporary server; by default the already running server's, or the embedded model. */
  model: string | undefined;
  port: number;
  /** A running server and Lab to use. */
  url?: string;
  lab?: string;
  /** Ports of the services that it starts, instead of a running one's. */
  serverPort?: number;
  labPort?: number;
  open: boolean;
  signal: AbortSignal;
}

export interface OpenWorkbench {
  /** Rejects if a started service gives up. */
  ended: Promise<void>;
  /** Stops the workbench and the services that it started. */
  close(): Promise<void>;
}

/** Queue size of a Lab started by the workbench. */
const waiting = 16;

/** Starts missing services, then the workbench, and prints its link. After an error, stops everything it started. */
export async function openWorkbench(options: WorkbenchRunOptions): Promise<OpenWorkbench> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  const progress = new ProgressLine(process.stderr);
  try {
    const { taplineHome } = await import("../../lab/index.js");
    const home = taplineHome();
    const server = await findServer(options, progress, closers);
    const lab = await findLab(options, home, closers);
    options.signal.throwIfAborted();
    const bench = await startWorkbench({
      port: options.port,
      home,
      server: server.url,
      lab,
      ...(server.model !== undefined && { model: server.model }),
      models: modelHost(server.own),
    });
    closers.push(() => bench.close());
    progress.clear();
    const link = bench.link();
    process.stdout.write(
      `tapline workbench is ready at ${bench.url}\n` +
        `Open this link in a browser on this machine. It works once, within ten minutes:\n  ${link}\n` +
        "Press Ctrl-C to stop; get another link with tapline workbench --link.\n",
    );
    if (options.open) closers.push(await openPrivately(bench.link(), bench.opened));
    return { ended: server.ended, close };
  } catch (error) {
    progress.clear();
    await close();
    throw error;
  }
}

function modelHost(own: OwnServer | undefined): ModelHost {
  return {
    async layOut(path) {
      const { estimateMemory } = await import("../../native/index.js");
      return estimateMemory({ path });
    },
    ...(own !== undefined && { serve: own.serve.bind(own) }),
  };
}

interface FoundServer {
  url: string;
  /** The model id it was started with, which the Lab also uses. */
  model?: string;
  /** The server, if this command started it. */
  own?: OwnServer;
  ended: Promise<void>;
}

async function findServer(
  { url, model, serverPort, signal }: WorkbenchRunOptions,
  progress: ProgressLine,
  closers: (() => Promise<unknown>)[],
): Promise<FoundServer> {
  const never = new Promise<void>(() => {});
  const usual = `http://127.0.0.1:${ports.inference}`;
  if (url !== undefined) {
    await new ServingModel(url).capabilities({ signal });
    return { url, ended: never };
  }
  const runs = await answers(
    async () =>
      "model" in (await new ServingModel(usual, { timeoutMs: greetingMs }).capabilities({ signal })),
  );
  if (runs && model === undefined && serverPort === undefined) return { url: usual, ended: never };
  const named = model ?? "demo";
  const start = (port: number) =>
    OwnServer.start(named, {
      ...{ host: "127.0.0.1", port, signal },
      onEvent: (event) => {
        if (event.event === "loading") {
          progress.show(`${event.stage} ${named}: ${Math.round(event.fraction * 100)} %`);
          return;
        }
        progress.clear();
        if (event.event === "warning" || event.event === "crashed") {
          process.stderr.write(`tapline: ${event.sentence}\n`);
        } else if (event.event === "fault") process.stderr.write(`${event.line}\n`);
      },
    });
  const own = await (serverPort !== undefined
    ? start(serverPort)
    : runs
      ? start(0)
      : start(ports.inference).catch(elsewhere(start)));
  closers.push(() => own.close());
  return { url: own.url, model: named, own, ended: own.ended };
}

async function findLab(
  { lab, labPort }: WorkbenchRunOptions,
  home: string,
  closers: (() => Promise<unknown>)[],
): Promise<string> {
  if (lab !== undefined) {
    await new Lab(lab).health();
    return lab;
  }
  if (labPort === undefined && (await isLab(usualLab))) return usualLab;
  const [{ startLab }, { backendInfo }] = await Promise.all([
    import("../../lab/index.js"),
    import("../../native/index.js"),
  ]);
  const start = (port: number) =>
    startLab({ port, home, queueCapacity: waiting, backend: backendInfo().backend });
  const service = await (labPort === undefined ? start(ports.lab).catch(elsewhere(start)) : start(labPort));
  closers.push(() => service.close());
  return service.url;
}

/** Falls back to a free port if another program uses the default one. */
function elsewhere<T>(start: (port: number) => Promise<T>): (error: unknown) => Promise<T> {
  return (error) => {
    if (error instanceof PortInUse) return start(0);
    throw error;
  };
}

/** A new link for a running workbench, using the key that it stores for its user. @throws UserError */
export async function newLink(port: number): Promise<string> {
  const { taplineHome } = await import("../../files/home.js");
  const none = new UserError(
    `You have no workbench running at port ${port}; start one with tapline workbench${port === ports.workbench ? "" : ` --port ${port}`}.`,
  );
  const key = await readFile(keyPath(taplineHome(), port), "utf8").catch(() => {
    throw none;
  });
  const http = new Transport(`http://127.0.0.1:${port}`, 10_000, {
    headers: { Authorization: `Bearer ${key}` },
  });
  try {
    return (await http.json<{ link: string }>(linkPath, { method: "POST" })).link;
  } catch (error) {
    if (error instanceof TaplineError && error.status === undefined) throw none;
    throw error;
  }
}
