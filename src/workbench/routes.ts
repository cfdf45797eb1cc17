import type { Context } from "koa";
import { TaplineError } from "../client/index.js";
import { InvalidInput, jobIdPattern, version } from "../contracts/index.js";
import { ProbeRequest, VectorRequest } from "../contracts/library.js";
import { namePattern } from "../contracts/live-limits.js";
import { UserError } from "../contracts/user-error.js";
import {
  AskRequest,
  ForkRequest,
  JobRequest,
  ModelRequest,
  SessionRequest,
  StudyRequest,
  TokensRequest,
} from "../contracts/workbench.js";
import { workbenchLimits } from "../contracts/workbench-limits.js";
import {
  checked,
  clientGone,
  createRouter,
  HttpError,
  type RouteContext,
  type Routes,
  readJson,
} from "../http/index.js";
import { findingsOf, type ReportedJob, renderReport } from "../report/index.js";
import { cookieName } from "./access.js";
import { HeadReader } from "./attention.js";
import { fitting } from "./fitting.js";
import type { Workbench } from "./index.js";
import { sentenceOf } from "./services.js";
import { studyDraft } from "./study.js";
import type { HeadPicture, State } from "./wire.js";

const jobPattern = new RegExp(jobIdPattern);
const keptName = new RegExp(namePattern);
const artifactPattern = /^\w[\w.-]{0,199}$/;

/** What the page asks of its service; nothing in it names a path or an address. */
export function apiRoutes(bench: Workbench): Routes {
  const { sessions, services, conversations, asker, models, events } = bench;
  const router = createRouter("/api");
  const body = (ctx: Context) => readJson(ctx, { limit: workbenchLimits.body_bytes });
  const id = (ctx: RouteContext) => ctx.params.id as string;
  /** A job's id, which is never a way to another path of the Lab's. */
  const jobId = (ctx: RouteContext) => {
    if (!jobPattern.test(id(ctx))) throw new HttpError(404, "There is no job of that id.");
    return id(ctx);
  };
  /** Likewise of what is kept by name. */
  const nameOf = (ctx: RouteContext, what: string) => {
    const name = ctx.params.name as string;
    if (!keptName.test(name)) throw new HttpError(404, `There is no ${what} of that name.`);
    return name;
  };
  const heads = new HeadReader(services.lab);

  router.post("/session", async (ctx) => {
    const { token } = checked(SessionRequest, await body(ctx));
    const session = sessions.redeem(token);
    if (session === undefined) {
      throw new HttpError(
        401,
        "This link was opened before, or is older than ten minutes. `tapline workbench --link` prints another.",
      );
    }
    const name = cookieName(ctx.socket.localPort);
    ctx.set("Set-Cookie", `${name}=${session.cookie}; HttpOnly; SameSite=Strict; Path=/`);
    ctx.body = { secret: session.secret };
    bench.onOpened();
  });

  router.delete("/sessions", (ctx) => {
    sessions.endAll();
    ctx.body = { ended: true };
  });

  router.get("/state", async (ctx) => {
    await services.look();
    ctx.body = {
      version,
      number: events.number,
      server: services.server,
      lab: services.labStatus,
      conversations: conversations.list(),
      jobs: services.jobs,
      models: models.status,
    } satisfies State;
  });

  router.get("/events", (ctx) => {
    const after = /^\d{1,15}$/.test(String(ctx.query.after)) ? Number(ctx.query.after) : events.number;
    ctx.type = "text/event-stream; charset=utf-8";
    ctx.body = events.stream(after);
  });

  router.post("/conversations", async (ctx) => {
    ctx.body = await told(asker.ask(undefined, checked(AskRequest, await body(ctx))));
    ctx.status = 201;
  });

  router.get("/conversations/:id", (ctx) => {
    // Written at once: an answer that goes on changes it, and the number says what is in it.
    ctx.type = "application/json";
    ctx.body = JSON.stringify({ number: events.number, conversation: conversations.get(id(ctx)) });
  });

  router.delete("/conversations/:id", async (ctx) => {
    await conversations.remove(id(ctx));
    ctx.body = { deleted: true };
  });

  router.post("/conversations/:id/turns", async (ctx) => {
    ctx.body = await told(asker.ask(id(ctx), checked(AskRequest, await body(ctx))));
    ctx.status = 201;
  });

  router.post("/conversations/:id/forks", async (ctx) => {
    ctx.body = await told(asker.fork(id(ctx), checked(ForkRequest, await body(ctx))));
    ctx.status = 201;
  });

  router.post("/conversations/:id/stop", (ctx) => {
    asker.stop(id(ctx));
    ctx.body = { stopped: true };
  });

  router.post("/tokens", async (ctx) => {
    const { texts } = checked(TokensRequest, await body(ctx));
    ctx.body = { tokens: await told(Promise.all(texts.map((text) => services.tokens(text)))) };
  });

  router.get("/library", async (ctx) => {
    const [served, vectors, probes, dictionaries, lenses] = await told(
      Promise.all([
        services.model.capabilities(),
        services.model.vectors(),
        services.model.probes(),
        services.lab.dictionaries().catch(() => []),
        services.lab.lenses().catch(() => []),
      ]),
    );
    ctx.body = {
      vectors: fitting(vectors, served),
      probes: fitting(probes, served),
      dictionaries: fitting(dictionaries, served),
      lenses: fitting(lenses, served),
    };
  });

  router.post("/vectors", async (ctx) => {
    ctx.body = await told(services.model.makeVector(checked(VectorRequest, await body(ctx))));
    ctx.status = 201;
    events.publish({ type: "library" });
  });

  router.get("/vectors/:name", async (ctx) => {
    ctx.body = await told(services.model.vector(nameOf(ctx, "vector")));
  });

  router.post("/probes", async (ctx) => {
    ctx.body = await told(services.model.makeProbe(checked(ProbeRequest, await body(ctx))));
    ctx.status = 201;
    events.publish({ type: "library" });
  });

  const model = async (ctx: Context) => checked(ModelRequest, await body(ctx)).model;

  router.get("/models", async (ctx) => {
    ctx.body = await told(models.here());
  });

  router.post("/models/fits", async (ctx) => {
    ctx.body = { memory: await told(models.fits(await model(ctx))) };
  });

  router.post("/models/offers", async (ctx) => {
    const name = await model(ctx);
    ctx.body = await told(models.offers(name, clientGone(ctx).signal));
  });

  router.post("/models/downloads", async (ctx) => {
    ctx.body = models.download(await model(ctx));
    ctx.status = 201;
  });

  router.post("/models/downloads/:id/stop", (ctx) => {
    models.stop(Number(id(ctx)));
    ctx.body = { stopped: true };
  });

  router.post("/models/remove", async (ctx) => {
    ctx.body = await told(models.remove(await model(ctx)));
  });

  router.post("/models/serve", async (ctx) => {
    if (conversations.list().some(({ running }) => running)) {
      throw new HttpError(409, "An answer is being given; stop it first, or wait for its end.");
    }
    await told(models.serve(await model(ctx)));
    ctx.body = { serving: true };
    ctx.status = 202;
  });

  router.post("/jobs", async (ctx) => {
    const asked = await body(ctx);
    const { operation, model } = checked(JobRequest, asked);
    // What else it says, the Lab checks.
    const { operation: _, model: __, ...settings } = asked as Record<string, unknown>;
    const submitted = services.lab.submit(operation as "inspect", model, settings as { prompt: string });
    ctx.body = await told(submitted);
    ctx.status = 201;
    await services.look();
  });

  router.post("/studies", async (ctx) => {
    const { jobs, words } = checked(StudyRequest, await body(ctx));
    ctx.body = await told(
      Promise.all(jobs.map((job) => services.lab.job(job))).then((found) => studyDraft(found, words)),
    );
  });

  router.get("/jobs/:id", async (ctx) => {
    ctx.body = await told(services.lab.job(jobId(ctx)));
  });

  /** A job, and once it has finished its figures: what they show in words, and their data. */
  router.get("/jobs/:id/findings", async (ctx) => {
    const job = await told(services.lab.job(jobId(ctx)));
    if (job.result === undefined) {
      ctx.body = { job };
      return;
    }
    const { summary, cautions, parts } = findingsOf(job as ReportedJob);
    const figures = parts.filter((part) => "chart" in part);
    const passages = parts.filter((part) => !("chart" in part)).map(({ id, title }) => ({ id, title }));
    ctx.body = { job, summary, cautions, figures, passages };
  });

  router.get("/jobs/:id/attention/:layer/:head", async (ctx) => {
    const [layer, head] = [ctx.params.layer, ctx.params.head].map((text) =>
      /^\d{1,4}$/.test(text as string) ? Number(text) : Number.NaN,
    ) as [number, number];
    if (Number.isNaN(layer + head)) throw new HttpError(400, "Layer and head are numbers.");
    ctx.body = (await told(heads.read(jobId(ctx), layer, head))) satisfies HeadPicture;
  });

  router.post("/jobs/:id/cancel", async (ctx) => {
    ctx.body = await told(services.lab.cancel(jobId(ctx)));
    await services.look();
  });

  router.get("/jobs/:id/report", async (ctx) => {
    const job = await told(services.lab.job(jobId(ctx)));
    if (job.result === undefined)
      throw new HttpError(409, `Job ${job.id} has no result; it is ${job.status}.`);
    // A file to keep: the page fetches it, so that it is never shown in this origin.
    ctx.type = "application/octet-stream";
    ctx.body = await renderReport(job as ReportedJob);
  });

  router.get("/jobs/:id/artifacts/:name", async (ctx) => {
    const [job, name] = [jobId(ctx), ctx.params.name as string];
    if (!artifactPattern.test(name)) throw new HttpError(404, "There is no artifact of that name.");
    const { signal } = clientGone(ctx);
    const path = `/lab/v1/jobs/${job}/artifacts/${encodeURIComponent(name)}`;
    const response = await told(services.labHttp.open(path, { signal }));
    ctx.type = "application/octet-stream";
    ctx.body = response;
  });

  return router;
}

/** What a service refused, refused here with its own sentence; a service that is gone is a 502. */
async function told<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof TaplineError || (error instanceof Error && error.name === "TimeoutError")) {
      const status = error instanceof TaplineError ? (error.status ?? 502) : 504;
      throw new HttpError(status, sentenceOf(error));
    }
    if (error instanceof InvalidInput) throw new HttpError(400, error.message);
    if (error instanceof UserError) throw new HttpError(409, error.message);
    throw error;
  }
}
