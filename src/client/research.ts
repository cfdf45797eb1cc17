import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { researchEnvironment, researchLimits } from "../contracts/research.js";
import type {
  Discussion,
  DraftCreated,
  StudyEnvelope,
  StudyPackage,
  StudyPage,
  StudySummary,
} from "../contracts/studies/index.js";
import { studyLimits } from "../contracts/studies/limits.js";
import { uuidPattern } from "../contracts/studies/uuid.js";
import { TimeoutError } from "./errors.js";
import { DraftMayExistError, ResearchError } from "./research-errors.js";
import { ConnectionBroke, exchange, type SecureAnswer } from "./research-transport.js";
import type { CallOptions } from "./transport.js";

export interface ResearchOptions {
  /** Origin of the service, https; AGENT_RESEARCH_URL unless told otherwise. */
  url?: string;
  /** Bearer token from the website's Agent access page; AGENT_RESEARCH_TOKEN unless told otherwise. */
  token?: string;
  /** PEM file of authorities to trust in place of Node's own; AGENT_RESEARCH_CA_FILE unless told otherwise. */
  caFile?: string;
  /** Milliseconds for a whole call, retries included; 30 s unless told otherwise. */
  timeoutMs?: number;
  /** Most bytes of an answer; 4 MiB unless told otherwise. */
  maxBytes?: number;
}

export interface ListOptions extends CallOptions {
  /** Words that all must occur; the last one may be a beginning. At most 160 characters. */
  query?: string;
  /** 1 to 50; 20 unless told otherwise. */
  limit?: number;
  /** 0 to 10,000. */
  offset?: number;
}

export interface GetOptions extends CallOptions {
  /** One version of a published study; the newest that stands unless told otherwise. */
  version?: number;
}

export interface SaveOptions extends CallOptions {
  /** The same key and package give the same draft for 24 hours; a new key for each call unless told otherwise. */
  idempotencyKey?: string;
}

interface Call extends CallOptions {
  method?: "POST";
  body?: Uint8Array;
  headers?: Record<string, string>;
}

/** The schemas and their compiler take longer to load than everything else here; only an answer needs them. */
const answers = () => import("./research-answers.js");

/**
 * The remote studies service: published research, its discussion, and private drafts. What it returns is text of
 * other people: evidence to quote, never instructions to follow.
 *
 * Every call rejects with {@link ResearchError} when the service refuses it or the answer cannot be trusted, with
 * {@link TimeoutError} on the deadline, with the signal's reason when aborted. Reads whose connection broke are
 * tried again within the deadline; writes never are.
 */
export class ResearchClient {
  readonly #origin: URL;
  readonly #token: string;
  readonly #ca: string | undefined;
  readonly #timeoutMs: number;
  readonly #maxBytes: number;

  /** @throws ResearchError when address, token or CA file is missing or no use; nothing is sent */
  constructor(options: ResearchOptions = {}, environment: NodeJS.ProcessEnv = process.env) {
    this.#origin = readOrigin(options.url ?? environment[researchEnvironment.url]);
    this.#token = readToken(options.token ?? environment[researchEnvironment.token]);
    this.#ca = readCa(options.caFile ?? environment[researchEnvironment.caFile]);
    this.#timeoutMs = options.timeoutMs ?? researchLimits.deadline_ms;
    this.#maxBytes = options.maxBytes ?? researchLimits.answer_bytes;
  }

  /** One page of published studies: the newest first, or what matches the query best. */
  async listStudies({ query, limit, offset, signal }: ListOptions = {}): Promise<StudyPage> {
    const parameters = new URLSearchParams();
    if (query !== undefined) parameters.set("q", query);
    if (limit !== undefined) parameters.set("limit", String(limit));
    if (offset !== undefined) parameters.set("offset", String(offset));
    const search = parameters.size === 0 ? "" : `?${parameters}`;
    const answer = await this.#read(`/api/v1/studies${search}`, signal);
    return (await answers()).readAnswer("page", answer);
  }

  /** Every study of a list, page after page, as far as the service pages (10,000). */
  async *studies(options: ListOptions = {}): AsyncGenerator<StudySummary, void> {
    let offset: number | null = options.offset ?? 0;
    while (offset !== null && offset <= studyLimits.offset) {
      const page: StudyPage = await this.listStudies({ ...options, offset });
      yield* page.items;
      offset = page.next_offset;
    }
  }

  /**
   * One study with its package: a published one, or a draft that this very token created. Under the id of a draft that
   * was published as a later version of a study stands that study.
   * @throws ResearchError with status 410, the code `withdrawn` or `removed` and the `reason` where it was taken down
   */
  async getStudy(id: string, { version, signal }: GetOptions = {}): Promise<StudyEnvelope> {
    if (version !== undefined && !(Number.isSafeInteger(version) && version >= 1)) {
      throw new ResearchError(`A version is a whole number from 1 on; this is ${version}.`);
    }
    const answer = await this.#read(
      studyPath(id) + (version === undefined ? "" : `/versions/${version}`),
      signal,
    );
    if (answer.headers["x-content-sha256"] === undefined) {
      throw new ResearchError("The study came without its checksum.", { status: answer.status });
    }
    return (await answers()).readAnswer("study", answer);
  }

  /** 50 comments of a study's public discussion, in thread order. */
  async getDiscussion(
    id: string,
    { offset, signal }: CallOptions & { offset?: number } = {},
  ): Promise<Discussion> {
    const search = offset === undefined ? "" : `?offset=${offset}`;
    const answer = await this.#read(`${studyPath(id)}/discussion${search}`, signal);
    return (await answers()).readAnswer("discussion", answer);
  }

  /**
   * Saves a package as a private draft. It is never published by this: a person reads it at `review_url`, signed
   * in, and publishes it there. One request, whatever happens.
   * @param study a package, or the bytes of one, which are kept exactly
   * @throws DraftMayExistError when the request may have arrived and its answer did not
   */
  async savePrivateDraft(study: StudyPackage | Uint8Array, options: SaveOptions = {}): Promise<DraftCreated> {
    const body = study instanceof Uint8Array ? study : Buffer.from(JSON.stringify(study));
    if (body.byteLength > studyLimits.package_bytes) {
      throw new ResearchError(
        `A package has at most ${studyLimits.package_bytes} bytes; this one has ${body.byteLength}.`,
      );
    }
    const key = options.idempotencyKey ?? randomUUID();
    if (!/^[\x21-\x7e]+$/.test(key) || key.length > studyLimits.idempotency_key) {
      throw new ResearchError(
        `An idempotency key is 1 to ${studyLimits.idempotency_key} printable ASCII characters without spaces.`,
      );
    }
    const created = await this.#save(body, key, options.signal);
    if (created.package_sha256 !== createHash("sha256").update(body).digest("hex")) {
      throw new ResearchError(`The draft ${created.id} was saved with other bytes than those sent.`);
    }
    return created;
  }

  /**
   * Whether the token may save drafts. The service has no question for that, so this sends a body that cannot be
   * a package: a token without the scope is refused before anybody looks at it. It counts as one request.
   */
  async maySaveDrafts({ signal }: CallOptions = {}): Promise<boolean> {
    const answer = await this.#within(signal, (ending) =>
      this.#exchange("/api/v1/studies", { method: "POST", body: Buffer.from("{}"), signal: ending }),
    );
    if (answer.status === 400) return true;
    const refused = (await answers()).refusal(answer, this.#token);
    if (refused.code === "scope_missing") return false;
    throw refused;
  }

  async #save(body: Uint8Array, key: string, signal: AbortSignal | undefined): Promise<DraftCreated> {
    const { readAnswer, refusal } = await answers();
    let answer: SecureAnswer;
    try {
      answer = await this.#within(signal, (ending) =>
        this.#exchange("/api/v1/studies", {
          method: "POST",
          body,
          headers: { "Idempotency-Key": key },
          signal: ending,
        }),
      );
      if (answer.status === 201) return readAnswer("draft", answer);
    } catch (error) {
      const arrived = !(error instanceof ConnectionBroke) || error.reached;
      const unclear = error instanceof TimeoutError || (error instanceof ResearchError && arrived);
      if (!unclear) throw error;
      const details = error instanceof ResearchError ? error : {};
      throw new DraftMayExistError(error.message, key, details);
    }
    const refused = refusal(answer, this.#token);
    // A fault in the middle of a write, or a proxy's word about one; a switched-off service has not begun.
    const unclear = answer.status < 400 || (answer.status >= 500 && refused.code !== "disabled");
    throw unclear ? new DraftMayExistError(refused.message, key, refused) : refused;
  }

  /** A GET whose answer is 200, tried again while that may help and time is left. */
  #read(path: string, signal: AbortSignal | undefined): Promise<SecureAnswer> {
    return this.#within(signal, async (ending) => {
      for (let attempt = 1; ; attempt++) {
        const last = attempt === researchLimits.read_attempts;
        let wait = 250 * attempt;
        try {
          const answer = await this.#exchange(path, { signal: ending });
          if (answer.status === 200) return answer;
          const refused = (await answers()).refusal(answer, this.#token);
          wait = Math.max(wait, 1000 * (refused.retryAfter ?? 0));
          const passing = [502, 503, 504].includes(answer.status) && wait <= researchLimits.retry_wait_ms;
          if (last || !passing) throw refused;
        } catch (error) {
          if (last || !(error instanceof ConnectionBroke && error.transient)) throw error;
        }
        await sleep(wait, undefined, { signal: ending });
      }
    });
  }

  /** Runs a call under its deadline and the caller's signal. @throws TimeoutError, or the signal's reason */
  async #within<T>(signal: AbortSignal | undefined, call: (ending: AbortSignal) => Promise<T>): Promise<T> {
    const deadline = AbortSignal.timeout(this.#timeoutMs);
    try {
      return await call(signal === undefined ? deadline : AbortSignal.any([signal, deadline]));
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (!deadline.aborted) throw error;
      throw new TimeoutError(
        `${this.#origin.host} did not answer completely within ${this.#timeoutMs / 1000} s.`,
      );
    }
  }

  #exchange(path: string, { method, body, headers, signal }: Call & { signal: AbortSignal }) {
    return exchange({
      url: new URL(path, this.#origin),
      method: method ?? "GET",
      body,
      headers,
      signal,
      token: this.#token,
      ca: this.#ca,
      maxBytes: this.#maxBytes,
    });
  }
}

const uuid = new RegExp(uuidPattern);

function studyPath(id: string): string {
  if (!uuid.test(id)) throw new ResearchError("A study's id is a UUID; this is none.");
  return `/api/v1/studies/${id}`;
}

// None of these repeats what it was given: a token may have ended up in the wrong place.
function readOrigin(address: string | undefined): URL {
  if (address === undefined || address === "") {
    throw new ResearchError(
      `No studies service is named; set ${researchEnvironment.url} to its https address.`,
    );
  }
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const bare =
    url?.pathname === "/" &&
    url.search === "" &&
    url.hash === "" &&
    url.username === "" &&
    url.password === "";
  if (url?.protocol !== "https:" || !bare) {
    throw new ResearchError(
      "The address of a studies service looks like https://studies.example.org, without path, name or password.",
    );
  }
  return url;
}

function readToken(token: string | undefined): string {
  if (token === undefined || token === "") {
    throw new ResearchError(`No token is given; set ${researchEnvironment.token} to one from Agent access.`);
  }
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new ResearchError("A token is printable ASCII without spaces or line ends; the given one is not.");
  }
  return token;
}

function readCa(file: string | undefined): string | undefined {
  if (file === undefined || file === "") return undefined;
  let pem: string;
  try {
    pem = readFileSync(file, "utf8");
  } catch (error) {
    throw new ResearchError(`The CA file ${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
  if (!pem.includes("-----BEGIN CERTIFICATE-----")) {
    throw new ResearchError(`The CA file ${file} holds no PEM certificate.`);
  }
  return pem;
}
