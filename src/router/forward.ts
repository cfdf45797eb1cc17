import type { IncomingMessage, ServerResponse } from "node:http";
import { inferenceLimits } from "../contracts/inference-limits.js";
import { disguisedLiveField, liveField } from "../contracts/live-field.js";
import { autoModel, routerLimits } from "../contracts/router.js";
import type { ExecutionTrace, Outcome } from "../executions/index.js";
import { corsHeaders, HttpError, localAccessFault, readBytes } from "../http/index.js";
import { AnswerTrace } from "./answer-trace.js";
import { Attempt, type AttemptEnd, type Refusal } from "./attempt.js";
import type { Backend } from "./backend.js";
import { type Member, membersOf, memberValue, withString } from "./body-fields.js";
import { isLoop, requestHeaders } from "./headers.js";
import { pick } from "./pick.js";
import type { RouterService } from "./service.js";

/** Limit on attempts, to prevent endless retries. */
const mostAttempts = 64;

/** The parts of a request that affect routing; everything else is up to the backend. */
interface Ask {
  body: Uint8Array;
  members: Member[];
  /** The requested model; null lets the router choose. */
  model: string | null;
  stream: boolean;
  thinking: boolean | null;
  /** Whether the body has a `tapline` object. */
  opensModel: boolean;
}

/** The error for a request that this router has already forwarded. */
export function routingLoop(): HttpError {
  return new HttpError(508, "Routing loop: a backend of this router leads back to the router itself.");
}

/** The error for a model that no backend lists. */
export function notServed(model: string): HttpError {
  const sentence = `No backend serves the model ${model.slice(0, 200)}.`;
  return new HttpError(404, sentence, { param: "model", code: "model_not_found" });
}

/** The error if no healthy backend serves the model. @param model null for any model */
export function unavailable({ backends, health }: RouterService, model: string | null): HttpError {
  const healthy = backends.some(({ state }) => state === "healthy");
  const none = healthy ? "No healthy backend lists a model" : "No backend is healthy";
  const which = model === null ? none : `No backend that serves ${model.slice(0, 200)} is healthy`;
  return new HttpError(503, `${which}; try again later.`, {
    code: "unavailable",
    headers: { "Retry-After": String(health.retryAfterSeconds()) },
  });
}

/** Forwards a request to a backend and its answer to the client. */
export async function forward(
  service: RouterService,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): Promise<void> {
  if (isLoop(request, service.via)) throw routingLoop();
  if (service.requests.active >= routerLimits.active) {
    throw new HttpError(
      503,
      `The router is overloaded: ${service.requests.active} requests are already active.`,
      {
        code: "overloaded",
        headers: { "Retry-After": "1" },
      },
    );
  }
  const began = performance.now();
  service.requests.total++;
  service.requests.active++;
  let outcome: Outcome | "refused" = "failed";
  let trace: ExecutionTrace | undefined;
  try {
    const ask = readAsk(await readBytes({ req: request }, inferenceLimits.body_bytes));
    if (ask.opensModel) checkOpening(request, service.backends);
    trace = service.executions.begin({
      endpoint: path,
      parentId: parentOf(request),
      model: ask.model ?? autoModel,
      thinking: ask.thinking,
      stream: ask.stream,
      input: ask.body,
    });
    outcome = await new Forwarding(service, request, response, path, ask, trace, began).run();
  } catch (error) {
    if (error instanceof HttpError && error.status < 500) outcome = "refused";
    trace?.failed(error instanceof Error ? error.message : String(error));
    throw error;
  } finally {
    trace?.ended(outcome === "refused" ? "failed" : outcome);
    service.ended(outcome, began);
  }
}

function parentOf(request: IncomingMessage): string | null {
  const parent = request.headers["x-tapline-execution-id"];
  return typeof parent === "string" && parent !== "" ? parent.slice(0, 256) : null;
}

function readAsk(body: Buffer): Ask {
  const members = membersOf(body);
  if (members === null) throw new HttpError(400, "The body must be a JSON object.");
  const model = memberValue(body, members, "model") ?? null;
  if (model !== null && typeof model !== "string") {
    throw new HttpError(400, "model must be a string.", { param: "model" });
  }
  const opensModel = (memberValue(body, members, liveField) ?? null) !== null;
  checkDisguises(body, members);
  const template = memberValue(body, members, "chat_template_kwargs") as { enable_thinking?: unknown } | null;
  const thinking = template?.enable_thinking;
  return {
    body,
    members,
    model: model === autoModel ? null : model,
    stream: memberValue(body, members, "stream") === true,
    thinking: typeof thinking === "boolean" ? thinking : null,
    opensModel,
  };
}

/** Rejects misspelled `tapline` fields, which other servers would silently ignore. */
function checkDisguises(body: Uint8Array, members: readonly Member[]): void {
  for (const { name } of members) {
    const fault = disguisedLiveField(name, () => memberValue(body, members, name));
    if (fault !== null) throw new HttpError(400, fault.sentence, { param: fault.field });
  }
}

/**
 * Requests with a `tapline` object may come only from programs on this machine, and go only to tapline servers on this
 * machine, which cannot distinguish the router's connection from a local program's.
 */
function checkOpening(request: IncomingMessage, backends: readonly Backend[]): void {
  const fault = localAccessFault(request);
  if (fault !== null) throw new HttpError(403, `tapline: ${fault}`, { param: "tapline" });
  if (!backends.some((backend) => backend.opensModels)) {
    throw new HttpError(400, "tapline: no backend of this router is a tapline server on this machine.", {
      param: "tapline",
    });
  }
}

/** Tries backends for one request until one answers it. */
class Forwarding {
  readonly #answer: AnswerTrace;
  readonly #refusedBy = new Set<Backend>();
  #refusal: Refusal | undefined;

  constructor(
    private readonly service: RouterService,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly path: string,
    private readonly ask: Ask,
    private readonly trace: ExecutionTrace,
    private readonly began: number,
  ) {
    this.#answer = new AnswerTrace(trace);
    if (ask.opensModel) {
      for (const backend of service.backends) if (!backend.opensModels) this.#refusedBy.add(backend);
    }
    response.on("error", () => {}); // a write to a closed connection; the close event handles it
  }

  async run(): Promise<Outcome | "refused"> {
    let deaths = 0;
    // A backend that closed a keep-alive connection may just have timed it out, so retry it on a new one.
    let again = null as Backend | null;
    for (let tries = 0; tries < mostAttempts; tries++) {
      const known: Backend | null = again?.state === "healthy" && !again.retired ? again : null;
      const fresh = known !== null;
      const backend: Backend | null = known ?? (await this.#choose());
      // Choosing may take seconds; a response that closed meanwhile emits no further event.
      if (this.response.destroyed) return "cancelled";
      again = null;
      if (backend === null) return this.#noBackend();
      if (tries > 0) this.service.requests.retried++;
      const { epoch } = backend;
      const end = await this.#try(backend, fresh);
      switch (end.kind) {
        case "answered":
          this.#answer.ended();
          if (end.status < 400) return "completed";
          return end.status < 500 ? "refused" : "failed";
        case "gone":
          return "cancelled";
        case "cut":
          this.service.health.failed(backend, epoch, `an answer was cut off: ${end.sentence}`);
          this.trace.failed(`${backend.url} cut off its answer: ${end.sentence}`);
          return "failed";
        case "unsendable":
          throw new HttpError(400, `The request cannot be forwarded: ${end.sentence}.`);
        case "refused":
          this.#refusedBy.add(backend);
          this.#refusal = end.refusal;
          this.trace.lifecycle(`${backend.url} answered ${end.refusal.status}`);
          // A tapline server answers 502 if its process died during the request.
          if (end.refusal.status === 502) deaths++;
          this.#giveUpAfter(deaths);
          break;
        case "unreached":
        case "broken":
          this.trace.lifecycle(`${backend.url} failed before the first byte: ${end.sentence}`);
          if (end.kind === "broken" && !end.head && !fresh) again = backend;
          else if (!backend.retired) this.service.health.failed(backend, epoch, end.sentence);
          if (end.kind === "broken") deaths++;
          this.#giveUpAfter(deaths);
          break;
        case "abandoned":
          this.trace.lifecycle(`${backend.url} does not respond; abandoned before the first byte`);
      }
    }
    throw new HttpError(502, `No backend answered this request in ${mostAttempts} attempts.`);
  }

  /** Stops retrying a request that seems to crash backends. */
  #giveUpAfter(deaths: number): void {
    if (deaths < routerLimits.deaths) return;
    throw new HttpError(
      502,
      `${deaths} backends in a row crashed during this request, so it is not retried.`,
    );
  }

  /** A backend that can take the request now; if there is none, checks backends that were set aside. */
  async #choose(): Promise<Backend | null> {
    const { model } = this.ask;
    const find = () => pick(this.service.backends, model, this.#refusedBy, performance.now());
    const found = find();
    if (found !== null) return found;
    const might = (backend: Backend) =>
      !this.#refusedBy.has(backend) && (!backend.listed || backend.idOf(model) !== null);
    if (await this.service.health.checkForRequest(might)) return find();
    if (model === null || this.#refusal !== undefined || this.#isListed(model)) return find();
    // The model may be newer than the lists.
    await this.service.health.refresh();
    return find();
  }

  #isListed(model: string): boolean {
    return this.service.backends.some((backend) => backend.idOf(model) !== null);
  }

  #noBackend(): Outcome {
    const { model } = this.ask;
    if (this.#refusal !== undefined) return this.#passRefusal(this.#refusal);
    const { backends } = this.service;
    if (model !== null && backends.some(({ listed }) => listed) && !this.#isListed(model)) {
      throw notServed(model);
    }
    throw unavailable(this.service, model);
  }

  /** All backends refused: forwards the last refusal. */
  #passRefusal({ status, headers, body }: Refusal): Outcome {
    const kept = headers.flatMap((name, index) =>
      index % 2 === 1 || /^content-length$/i.test(name) ? [] : [name, headers[index + 1] as string],
    );
    if (!kept.some((name, index) => index % 2 === 0 && /^retry-after$/i.test(name)))
      kept.push("Retry-After", "1");
    kept.push("Content-Length", String(body.length));
    this.response.writeHead(status, kept).end(body);
    return "failed";
  }

  #try(backend: Backend, fresh: boolean): Promise<AttemptEnd> {
    const { model, members, stream } = this.ask;
    const id = backend.idOf(model) as string;
    const body = id === model ? this.ask.body : withString(this.ask.body, members, "model", id);
    const sent = performance.now();
    backend.requests++;
    backend.lastPicked = sent;
    this.trace.lifecycle(`sent to ${backend.url} as ${id}`);
    const { apiKey, via } = this.service;
    const headers = requestHeaders(this.request, {
      via,
      // Access was already checked: here for requests with interventions, in front.ts for llama-server's own paths.
      local: this.ask.opensModel || !this.path.startsWith("/v1/"),
      executionId: this.trace.id,
      apiKey: backend.config.api_key,
      keyIsOurs: apiKey !== undefined,
    });
    const own = this.trace.id === null ? [] : ["X-Tapline-Execution-ID", this.trace.id];
    for (const [name, value] of Object.entries(corsHeaders(this.request, this.service.cors))) {
      own.push(name, String(value));
    }
    return Attempt.run(
      backend,
      { path: this.request.url as string, headers, body, fresh },
      this.response,
      own,
      {
        started: (status, contentType) => {
          const now = performance.now();
          this.service.health.answered(backend);
          this.#answer.started(contentType);
          if (!stream || status !== 200) return;
          backend.measured(now - sent, now);
          this.service.firstToken.add((now - this.began) / 1000);
        },
        passed: (chunk) => this.#answer.passed(chunk),
      },
    );
  }
}
