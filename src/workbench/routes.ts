import type { Context } from "koa";
import { TaplineError } from "../client/index.js";
import { InvalidInput, jobIdPattern, version } from "../contracts/index.js";
import { ProbeRequest, VectorRequest } from "../contracts/library.js";
import { namePattern } from "../contracts/live-limits.js";
import { sha256Pattern } from "../contracts/sha256.js";
import { UserError } from "../contracts/user-error.js";
import {
  AskRequest,
  ContrastRequest,
  DictionaryAddition,
  DictionaryTraining,
  DraftRequest,
  ForkRequest,
  JobNoteRequest,
  JobRequest,
  LabelRequest,
  MeasuredProbeRequest,
  ModelRequest,
  ProfileAddition,
  ReadingRequest,
  RenameRequest,
  SessionRequest,
  StudyRequest,
  TokenPlaceRequest,
  TokensRequest,
  TrainedDictionaryRequest,
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
import type { Asker } from "./asker.js";
import { HeadReader } from "./attention.js";
import type { Contrasts } from "./contrasts/contrasts.js";
import { readContrastSets } from "./contrasts/sets.js";
import type { Conversations } from "./conversations.js";
import { downloadDictionary } from "./dictionary-download.js";
import { storeTrainedDictionary, trainingSettings } from "./dictionary-training.js";
import type { Events } from "./events.js";
import { contextOf } from "./exact-tokens.js";
import { fitting, profileMisfit } from "./fitting.js";
import type { JobNotes } from "./job-notes.js";
import type { FeatureLabels } from "./labels/labels.js";
import { storeMeasuredProbe } from "./measured-probe.js";
import type { Models } from "./models.js";
import type { Readings } from "./readings.js";
import { type Services, sentenceOf } from "./services.js";
import type { Sessions } from "./sessions.js";
import { saveDraft, studiesService, studyDraft } from "./study.js";
import type { HeadPicture, State } from "./wire.js";

const jobPattern = new RegExp(jobIdPattern);
const validName = new RegExp(namePattern);
const artifactPattern = /^\w[\w.-]{0,199}$/;

/** The parts that the routes use. */
export interface Workbench {
  readonly sessions: Sessions;
  readonly services: Services;
  readonly conversations: Conversations;
  readonly asker: Asker;
  readonly contrasts: Contrasts;
  readonly models: Models;
  readonly readings: Readings;
  readonly labels: FeatureLabels;
  readonly notes: JobNotes;
  readonly events: Events;
  /** Called when a browser has signed in. */
  onOpened(): void;
}

/** The page's API; only `POST /models/files` takes a path, and only a studies draft and a label an address. */
export function apiRoutes(bench: Workbench): Routes {
  const { sessions, services, conversations, asker, contrasts, models, readings, labels, notes, events } =
    bench;
  const started = Date.now() / 1000;
  const router = createRouter("/api");
  /** A route that responds with the result of `work`, unless `work` has responded itself. */
  const on = (
    method: "get" | "post" | "delete",
    path: string,
    work: (ctx: RouteContext) => unknown,
    status?: number,
  ) =>
    router[method](path, async (ctx) => {
      const answer = await passErrorsOn(work, ctx);
      if (answer !== undefined) ctx.body = answer;
      if (status !== undefined) ctx.status = status;
    });
  const body = (ctx: Context) => readJson(ctx, { limit: workbenchLimits.body_bytes });
  const id = (ctx: RouteContext) => ctx.params.id as string;
  /** A job's id, checked because it becomes part of a path of the Lab. */
  const jobId = (ctx: RouteContext) => {
    if (!jobPattern.test(id(ctx))) throw new HttpError(404, "No job has this id.");
    return id(ctx);
  };
  /** The same for names. */
  const nameOf = (ctx: RouteContext, what: string) => {
    const name = ctx.params.name as string;
    if (!validName.test(name)) throw new HttpError(404, `No ${what} has this name.`);
    return name;
  };
  const heads = new HeadReader(services.lab);

  on("post", "/session", async (ctx) => {
    const { token } = checked(SessionRequest, await body(ctx));
    const session = sessions.redeem(token);
    if (session === undefined) {
      throw new HttpError(401, "This link has already been used or has expired (10 minutes).");
    }
    const name = cookieName(ctx.socket.localPort);
    ctx.set("Set-Cookie", `${name}=${session.cookie}; HttpOnly; SameSite=Strict; Path=/`);
    bench.onOpened();
    return { secret: session.secret };
  });

  on("delete", "/sessions", () => {
    sessions.endAll();
    return { ended: true };
  });

  on("get", "/state", async () => {
    await services.look();
    return {
      version,
      started,
      number: events.number,
      server: services.server,
      lab: services.labStatus,
      conversations: conversations.list(),
      jobs: services.jobs,
      notes: notes.all,
      models: models.status,
    } satisfies State;
  });

  on("get", "/events", (ctx) => {
    const after = /^\d{1,15}$/.test(String(ctx.query.after)) ? Number(ctx.query.after) : events.number;
    ctx.type = "text/event-stream; charset=utf-8";
    return events.stream(after);
  });

  const ask = async (ctx: RouteContext, of?: string) => asker.ask(of, checked(AskRequest, await body(ctx)));
  on("post", "/conversations", (ctx) => ask(ctx), 201);
  on("post", "/conversations/:id/turns", (ctx) => ask(ctx, id(ctx)), 201);
  const fork = async (ctx: RouteContext) => asker.fork(id(ctx), checked(ForkRequest, await body(ctx)));
  on("post", "/conversations/:id/forks", fork, 201);

  on("post", "/conversations/:id/context", async (ctx) =>
    contextOf(services, conversations.get(id(ctx)).turns, checked(TokenPlaceRequest, await body(ctx))),
  );

  on("get", "/conversations/:id", (ctx) => {
    // Serialized now, because a running answer changes it; the number must match the content.
    ctx.type = "application/json";
    return JSON.stringify({ number: events.number, conversation: conversations.get(id(ctx)) });
  });

  on("delete", "/conversations/:id", async (ctx) => {
    await conversations.remove(id(ctx));
    return { deleted: true };
  });

  on("post", "/conversations/:id/stop", (ctx) => {
    asker.stop(id(ctx));
    return { stopped: true };
  });

  on("post", "/readings", async (ctx) => readings.start(checked(ReadingRequest, await body(ctx))), 201);
  on("get", "/readings/:id", (ctx) => readings.get(id(ctx)));

  on("post", "/tokens", async (ctx) => {
    const { texts } = checked(TokensRequest, await body(ctx));
    return { tokens: await Promise.all(texts.map((text) => services.tokens(text))) };
  });

  on("get", "/library", async () => {
    const [served, vectors, probes, profiles, dictionaries, lenses] = await Promise.all([
      services.model.capabilities(),
      services.model.vectors(),
      services.model.probes(),
      services.model.profiles().catch(() => []),
      services.lab.dictionaries().catch(() => []),
      services.lab.lenses().catch(() => []),
    ]);
    return {
      vectors: fitting(
        vectors.filter(({ name }) => !contrasts.isControl(name)),
        served,
      ),
      probes: fitting(probes, served),
      profiles: profiles.filter((profile) => profileMisfit(profile, served) === undefined),
      dictionaries: fitting(dictionaries, served),
      lenses: fitting(lenses, served),
    };
  });

  /** After an addition to the library, every tab loads it again. */
  const added = async <T>(making: Promise<T>) => {
    const made = await making;
    events.publish({ type: "library" });
    return made;
  };
  const vector = async (ctx: Context) => services.model.makeVector(checked(VectorRequest, await body(ctx)));
  on("post", "/vectors", (ctx) => added(vector(ctx)), 201);
  on("get", "/vectors/:name", (ctx) => services.model.vector(nameOf(ctx, "vector")));
  /** A job's measured probe, or one trained on texts by the server. */
  const probe = async (ctx: Context) => {
    const asked = await body(ctx);
    return typeof asked === "object" && asked !== null && "job" in asked
      ? storeMeasuredProbe(services, checked(MeasuredProbeRequest, asked))
      : services.model.makeProbe(checked(ProbeRequest, asked));
  };
  on("post", "/probes", (ctx) => added(probe(ctx)), 201);

  on("get", "/contrasts", async () => ({ contrasts: await contrasts.list() }));
  const contrast = async (ctx: Context) => contrasts.make(checked(ContrastRequest, await body(ctx)).name);
  on("post", "/contrasts", async (ctx) => ({ contrasts: await contrast(ctx) }), 202);

  /** Trains on texts in a job, which `POST /dictionaries` with its id then saves. */
  on(
    "post",
    "/dictionaries/train",
    async (ctx) => {
      const asked = checked(DictionaryTraining, await body(ctx));
      const settings = trainingSettings(asked, asked.texts === undefined ? await readContrastSets() : []);
      const { path } = services.server;
      if (path === null) throw new HttpError(503, services.server.sentence);
      const job = await services.lab.submit("sae", path, settings as object as { examples: never[] });
      await services.look();
      return job;
    },
    201,
  );
  on(
    "post",
    "/dictionaries",
    async (ctx) => {
      const request = await body(ctx);
      if (typeof request === "object" && request !== null && "job" in request) {
        return added(storeTrainedDictionary(services, checked(TrainedDictionaryRequest, request)));
      }
      const { name, from, ...settings } = checked(DictionaryAddition, request);
      // Downloads may take minutes; they end with the request.
      const { signal } = clientGone(ctx);
      await downloadDictionary(models, from, settings.revision, signal);
      return added(services.lab.addDictionary(name, from, settings, { signal }));
    },
    201,
  );

  /** Saves the page's interventions as a profile of the served model. */
  const profile = async (ctx: Context) => {
    const { name, ...request } = checked(ProfileAddition, await body(ctx));
    return services.model.putProfile(name, request);
  };
  on("post", "/profiles", (ctx) => added(profile(ctx)), 201);

  on("get", "/labels", async () => ({ labels: await labels.all() }));
  on(
    "post",
    "/labels",
    async (ctx) => added(labels.propose(checked(LabelRequest, await body(ctx)), clientGone(ctx).signal)),
    201,
  );
  on("delete", "/labels/:sha256/:feature", (ctx) => {
    const { sha256, feature } = ctx.params as { sha256: string; feature: string };
    if (!new RegExp(sha256Pattern).test(sha256) || !/^\d{1,8}$/.test(feature)) {
      throw new HttpError(404, "There is no such label.");
    }
    return added(labels.remove(sha256, Number(feature)).then(() => ({ deleted: true })));
  });

  /** Directions, probes and profiles are saved by the server, dictionaries and lenses by the Lab. */
  const shelved = (ctx: RouteContext) => {
    const kind = ctx.params.kind as string;
    const atServer = ["vectors", "probes", "profiles"].includes(kind);
    if (!atServer && !["dictionaries", "lenses"].includes(kind)) {
      throw new HttpError(404, `There is nothing at ${ctx.path}.`);
    }
    const at = atServer ? services.http : services.labHttp;
    return { at, path: `/lab/${kind}/${encodeURIComponent(nameOf(ctx, kind.replace(/(ie)?s$/, "")))}` };
  };
  on("delete", "/library/:kind/:name", (ctx) => {
    const { at, path } = shelved(ctx);
    return added(at.json(path, { method: "DELETE" }));
  });
  on("post", "/library/:kind/:name/rename", async (ctx) => {
    const { at, path } = shelved(ctx);
    const renamed = checked(RenameRequest, await body(ctx));
    return added(at.json(`${path}/rename`, { method: "POST", body: renamed }));
  });

  const model = async (ctx: Context) => checked(ModelRequest, await body(ctx)).model;
  on("get", "/models", () => models.here());
  on("post", "/models/files", async (ctx) => models.open(await model(ctx)), 201);
  on("post", "/models/fits", async (ctx) => ({ memory: await models.fits(await model(ctx)) }));
  on("post", "/models/offers", async (ctx) => models.offers(await model(ctx), clientGone(ctx).signal));
  on("post", "/models/downloads", async (ctx) => models.download(await model(ctx)), 201);
  on("post", "/models/remove", async (ctx) => models.remove(await model(ctx)));

  on("post", "/models/downloads/:id/stop", (ctx) => {
    models.stop(Number(id(ctx)));
    return { stopped: true };
  });

  const serve = async (ctx: Context) => {
    if (conversations.list().some(({ running }) => running)) {
      throw new HttpError(409, "An answer is being generated; stop it or wait until it is done.");
    }
    await models.serve(await model(ctx));
    return { serving: true };
  };
  on("post", "/models/serve", serve, 202);

  const submit = async (ctx: Context) => {
    const asked = await body(ctx);
    const { operation, model } = checked(JobRequest, asked);
    // The Lab checks the other fields.
    const { operation: _, model: __, ...settings } = asked as Record<string, unknown>;
    const job = await services.lab.submit(operation as "inspect", model, settings as { prompt: string });
    await services.look();
    return job;
  };
  on("post", "/jobs", submit, 201);

  on("post", "/studies", async (ctx) => {
    const { jobs, words } = checked(StudyRequest, await body(ctx));
    return studyDraft(await Promise.all(jobs.map((job) => services.lab.job(job))), words);
  });

  on("get", "/studies/service", () => studiesService());
  on(
    "post",
    "/studies/drafts",
    async (ctx) => {
      const { service, ...draft } = checked(DraftRequest, await body(ctx));
      const jobs = await Promise.all(draft.jobs.map((job) => services.lab.job(job)));
      return saveDraft(jobs, draft.words, service, clientGone(ctx).signal);
    },
    201,
  );

  on("post", "/jobs/:id/note", async (ctx) =>
    notes.change(jobId(ctx), checked(JobNoteRequest, await body(ctx))),
  );
  on("delete", "/jobs/:id", async (ctx) => {
    const id = jobId(ctx);
    await services.labHttp.json(`/lab/v1/jobs/${id}`, { method: "DELETE" });
    notes.drop(id);
    await services.look();
    return { deleted: true };
  });

  on("get", "/jobs/:id", (ctx) => services.lab.job(jobId(ctx)));

  /** A job and, once it has completed, its findings and figures. */
  on("get", "/jobs/:id/findings", async (ctx) => {
    const job = await services.lab.job(jobId(ctx));
    if (job.result === undefined) return { job };
    const { summary, cautions, parts } = findingsOf(job as ReportedJob);
    const figures = parts.filter((part) => "chart" in part);
    const passages = parts.filter((part) => !("chart" in part)).map(({ id, title }) => ({ id, title }));
    return { job, summary, cautions, figures, passages };
  });

  on("get", "/jobs/:id/attention/:layer/:head", (ctx) => {
    const [layer, head] = [ctx.params.layer, ctx.params.head].map((text) =>
      /^\d{1,4}$/.test(text as string) ? Number(text) : Number.NaN,
    ) as [number, number];
    if (Number.isNaN(layer + head)) throw new HttpError(400, "Layer and head must be numbers.");
    return heads.read(jobId(ctx), layer, head) satisfies Promise<HeadPicture>;
  });

  on("post", "/jobs/:id/cancel", async (ctx) => {
    const job = await services.lab.cancel(jobId(ctx));
    await services.look();
    return job;
  });

  on("get", "/jobs/:id/report", async (ctx) => {
    const job = await services.lab.job(jobId(ctx));
    if (job.result === undefined)
      throw new HttpError(409, `Job ${job.id} has no result; it is ${job.status}.`);
    // A file to save: it must never be shown in this origin.
    ctx.type = "application/octet-stream";
    return renderReport(job as ReportedJob);
  });

  on("get", "/jobs/:id/artifacts/:name", async (ctx) => {
    const [job, name] = [jobId(ctx), ctx.params.name as string];
    if (!artifactPattern.test(name)) throw new HttpError(404, "No artifact has this name.");
    const { signal } = clientGone(ctx);
    const path = `/lab/v1/jobs/${job}/artifacts/${encodeURIComponent(name)}`;
    const response = await services.labHttp.open(path, { signal });
    ctx.type = "application/octet-stream";
    return response;
  });

  return router;
}

/** Passes on the status and message of a service's error; an unreachable service is a 502. */
async function passErrorsOn(work: (ctx: RouteContext) => unknown, ctx: RouteContext): Promise<unknown> {
  try {
    return await work(ctx);
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
