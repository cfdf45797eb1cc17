import { timingSafeEqual } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Middleware } from "koa";
import { createApp, createRouter, HttpError, type Listening, listen, type Routes } from "../http/index.js";
import { guardHeaders, linkPath, workbenchAccess } from "./access.js";
import { Asker } from "./asker.js";
import { type Asset, readAssets } from "./assets.js";
import { Contrasts } from "./contrasts/contrasts.js";
import { Conversations } from "./conversations.js";
import { Events } from "./events.js";
import { JobNotes } from "./job-notes.js";
import { FeatureLabels } from "./labels/labels.js";
import { type ModelHost, Models } from "./models.js";
import { Readings } from "./readings.js";
import { apiRoutes } from "./routes.js";
import { type ServiceAddresses, Services } from "./services.js";
import { digest, randomSecret, Sessions } from "./sessions.js";

export { linkPath } from "./access.js";
export type { ModelHost } from "./models.js";

export interface WorkbenchOptions extends ServiceAddresses {
  /** 0 takes any free one. */
  port: number;
  /** tapline's home: conversations, and the key with which `--link` requests a link. */
  home: string;
  /** The caller's functions for models. */
  models: ModelHost;
  /** The folder of the page's files, if not the default. */
  page?: string;
  /** Milliseconds since 1970, for tests. */
  now?: () => number;
  log?: (line: string) => void;
}

export interface WorkbenchService {
  readonly url: string;
  readonly port: number;
  /** An address that signs in one browser, once, within ten minutes. */
  link(): string;
  /** Resolves when a browser has signed in. */
  readonly opened: Promise<void>;
  /** Ends running answers, streams and the port. Idempotent. */
  close(): Promise<void>;
}

/** Views with an address; all are the same page. */
const views = [
  ...["chat", "inspect", "compare", "patch", "graph", "steer", "probe", "features", "drift", "jobs"],
  ...["session", "models"],
];

/** Serves the workbench on 127.0.0.1. @throws UserError */
export async function startWorkbench(options: WorkbenchOptions): Promise<WorkbenchService> {
  const assets = await readAssets(options.page);
  const folder = join(options.home, "workbench");
  const events = new Events();
  const sessions = new Sessions(options.now);
  const services = new Services(options, events);
  const conversations = await Conversations.open(join(folder, "conversations"), events);
  const contrasts = new Contrasts(services, events, join(folder, "contrasts"));
  const asker = new Asker(services, conversations, events, (vector) => contrasts.controlOf(vector));
  const models = new Models(services, events, options.models);
  const readings = new Readings(join(folder, "readings"), services);
  const labels = new FeatureLabels(join(folder, "labels.json"), services);
  const notes = await JobNotes.open(folder, events, (id) => services.lab.job(id));
  services.onJobs = (jobs) => void notes.follow(jobs);
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const key = randomSecret();
  let http: Listening | undefined;
  const link = () => `${(http as Listening).url}/#${sessions.link()}`;
  const bench = {
    sessions,
    services,
    conversations,
    asker,
    contrasts,
    models,
    readings,
    labels,
    notes,
    events,
    onOpened: () => open(),
  };
  const app = createApp({
    before: [guardHeaders, workbenchAccess(sessions), missingPage(assets.get("index.html") as Asset)],
    routers: [pageRoutes(assets), apiRoutes(bench), controlRoutes(key, link)],
    ...(options.log === undefined ? {} : { log: options.log }),
  });
  http = await listen(app, { port: options.port, graceMs: 500 });
  const { url, port, close } = http;
  const keyFile = keyPath(options.home, port);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await rm(keyFile, { force: true });
  await writeFile(keyFile, key, { mode: 0o600, flag: "wx" });
  let closing: Promise<void> | undefined;
  return {
    url,
    port,
    link,
    opened,
    close() {
      closing ??= (async () => {
        services.close();
        asker.close();
        contrasts.close();
        models.close();
        readings.close();
        await rm(keyFile, { force: true });
        await close();
        await Promise.all([conversations.settled(), notes.settled(), readings.settled(), labels.settled()]);
      })();
      return closing;
    },
  };
}

/** The file with the key for requesting links; only readable by its user. */
export function keyPath(home: string, port: number): string {
  return join(home, "workbench", `link-key-${port}`);
}

function pageRoutes(assets: ReadonlyMap<string, Asset>): Routes {
  const router = createRouter();
  const shell = assets.get("index.html") as Asset;
  const show = (ctx: { type: string; body: unknown }, { type, bytes }: Asset) => {
    ctx.type = type;
    ctx.body = bytes;
  };
  router.get("/", (ctx) => show(ctx, shell));
  for (const view of views) {
    router.get(`/${view}`, (ctx) => show(ctx, shell));
    router.get(`/${view}/:rest`, (ctx) => show(ctx, shell));
  }
  // For `tapline ready` and `tapline doctor`, as in the other services.
  router.get("/health", (ctx) => {
    ctx.body = { status: "ok" };
  });
  router.get("/page/:name", (ctx) => {
    const asset = assets.get(ctx.params.name as string);
    if (asset === undefined) throw new HttpError(404, `There is nothing at ${ctx.path}.`);
    show(ctx, asset);
  });
  return router;
}

/** A wrong address in a browser shows the page, which says so; programs get the error. */
function missingPage({ type, bytes }: Asset): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      const isPage =
        ctx.method === "GET" &&
        !/^\/(?:api|page|control)\//.test(ctx.path) &&
        /\btext\/html\b/.test(ctx.headers.accept ?? "");
      if (!isPage || !(error instanceof HttpError) || error.status !== 404) throw error;
      ctx.status = 404;
      ctx.type = type;
      ctx.body = bytes;
    }
  };
}

/** For programs of the same user, which can read the key's file. */
function controlRoutes(key: string, link: () => string): Routes {
  const router = createRouter();
  const wanted = digest(key);
  router.post(linkPath, (ctx) => {
    const given = /^Bearer (\S+)$/.exec(ctx.headers.authorization ?? "")?.[1] ?? "";
    if (!timingSafeEqual(digest(given), wanted)) throw new HttpError(401, "The key is missing or wrong.");
    ctx.body = { link: link() };
  });
  return router;
}
