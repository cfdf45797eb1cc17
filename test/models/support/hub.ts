import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** One repository of the test hub. */
export interface TestRepository {
  /** Content by path; files larger than `lfsFrom` are in LFS. */
  files: Record<string, Buffer>;
  /** Branches and tags beside `main`, by name: the commit they mean. */
  refs?: Record<string, string>;
  commit?: string;
  gated?: boolean;
  /** Only who has this token sees it. */
  token?: string;
}

/** Faults on the way; all of them concern the content of files. */
export interface Faults {
  /** Ends a connection after a number of bytes of a body; called for each request. */
  cutAfter?: (sent: number) => number | undefined;
  /** Other bytes than announced. */
  corrupt?: boolean;
  /** Milliseconds between chunks of `dripBytes`. */
  dripMs?: number;
  dripBytes?: number;
  /** Sends headers and then nothing. */
  stall?: () => boolean;
  /** Answers with the whole file whatever was asked for. */
  ignoreRanges?: boolean;
  /** Answers so, before anything else; called for each request of either server. */
  status?: (path: string) => { status: number; headers?: Record<string, string> } | undefined;
  /** Sends the LFS pointer instead of the content. */
  pointer?: boolean;
}

export interface SeenRequest {
  server: "hub" | "cdn";
  method: string;
  path: string;
  range: string | undefined;
  authorization: string | undefined;
}

/**
 * A hub on loopback that speaks the real hub's API: model information and file tree with pages, `resolve` with
 * HEAD, ETags and a redirect of LFS files to a content server of another origin, byte ranges, error codes.
 */
export class TestHub {
  readonly repositories: Record<string, TestRepository> = {};
  readonly requests: SeenRequest[] = [];
  faults: Faults = {};
  lfsFrom = 1024;
  treePage = 2;
  readonly #hub: Server;
  readonly #cdn: Server;
  #sent = 0;

  private constructor() {
    this.#hub = createServer((request, response) => this.#answer(request, response));
    this.#cdn = createServer((request, response) => this.#content(request, response));
  }

  static async open(): Promise<TestHub> {
    const hub = new TestHub();
    for (const server of [hub.#hub, hub.#cdn]) {
      await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    }
    return hub;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#hub.address() as AddressInfo).port}`;
  }

  /** Bytes of files sent so far. */
  get sent(): number {
    return this.#sent;
  }

  /** Requests for the content of files. */
  get downloads(): SeenRequest[] {
    return this.requests.filter(({ server, method }) => server === "cdn" && method === "GET");
  }

  async close(): Promise<void> {
    for (const server of [this.#hub, this.#cdn]) {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    }
  }

  #record(server: "hub" | "cdn", request: IncomingMessage): URL {
    const url = new URL(request.url ?? "/", "http://hub");
    this.requests.push({
      server,
      method: request.method ?? "",
      path: url.pathname,
      range: request.headers.range,
      authorization: request.headers.authorization,
    });
    return url;
  }

  #answer(request: IncomingMessage, response: ServerResponse): unknown {
    const url = this.#record("hub", request);
    const odd = this.faults.status?.(url.pathname);
    if (odd !== undefined) return end(response, odd.status, { error: "odd" }, odd.headers);
    const path = decodeURIComponent(url.pathname);
    const api = /^\/api\/models\/([^/]+\/[^/]+)\/(revision|tree)\/(.+)$/.exec(path);
    const file = /^\/([^/]+\/[^/]+)\/(resolve|raw)\/([^/]+)\/(.+)$/.exec(path);
    const name = api?.[1] ?? file?.[1] ?? "";
    const repository = this.repositories[name];
    const token = /^Bearer (.*)$/.exec(request.headers.authorization ?? "")?.[1];
    if (token === "hf_expired")
      return end(response, 401, { error: "Invalid credentials in Authorization header" });
    // The real hub does not reveal to strangers whether a private repository exists.
    if (repository === undefined || (repository.token !== undefined && repository.token !== token)) {
      const known = token !== undefined;
      const error = known ? "Repository not found" : "Invalid username or password.";
      return end(response, known ? 404 : 401, { error }, { "X-Error-Code": "RepoNotFound" });
    }
    const revision = api?.[3] ?? file?.[3] ?? "";
    const commit = commitOf(repository, revision);
    if (commit === undefined) {
      return end(
        response,
        404,
        { error: `Invalid rev id: ${revision}` },
        { "X-Error-Code": "RevisionNotFound" },
      );
    }
    if (api?.[2] === "revision") {
      return end(response, 200, {
        _id: "0",
        id: name,
        sha: commit,
        private: repository.token !== undefined,
        gated: repository.gated ? "manual" : false,
        downloads: 0,
        likes: 0,
        lastModified: "2026-01-01T00:00:00.000Z",
      });
    }
    if (api?.[2] === "tree") return this.#tree(name, repository, commit, url, response);
    if (file !== null) return this.#resolve(name, repository, commit, file[2]!, file[4]!, request, response);
    return end(response, 404, { error: "Not Found" });
  }

  #tree(name: string, repository: TestRepository, commit: string, url: URL, response: ServerResponse): void {
    const entries = Object.entries(repository.files).map(([path, content]) => ({
      type: "file",
      oid: gitHash(this.#isLfs(content) ? pointer(content) : content),
      size: content.length,
      path,
      ...(this.#isLfs(content) && {
        lfs: { oid: sha256(content), size: content.length, pointerSize: pointer(content).length },
        xetHash: sha256(Buffer.from(path)),
      }),
    }));
    const folders = [
      ...new Set(entries.flatMap(({ path }) => (path.includes("/") ? [path.split("/")[0]] : []))),
    ];
    const all = [
      ...folders.map((path) => ({ type: "directory", oid: gitHash(Buffer.of()), size: 0, path })),
      ...entries,
    ];
    const at = Number(url.searchParams.get("cursor") ?? 0);
    const next = at + this.treePage;
    const link = `<${this.url}/api/models/${name}/tree/${commit}?recursive=true&cursor=${next}>; rel="next"`;
    end(response, 200, all.slice(at, next), next < all.length ? { Link: link } : {});
  }

  #resolve(
    name: string,
    repository: TestRepository,
    commit: string,
    kind: string,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): unknown {
    const content = repository.files[path];
    if (content === undefined) {
      return end(response, 404, { error: "Entry not found" }, { "X-Error-Code": "EntryNotFound" });
    }
    if (repository.gated && request.headers.authorization !== "Bearer hf_granted") {
      const error = `Access to model ${name} is restricted.`;
      const status = request.headers.authorization === undefined ? 401 : 403;
      return end(response, status, { error }, { "X-Error-Code": "GatedRepo" });
    }
    const head = { "X-Repo-Commit": commit, "Accept-Ranges": "bytes" };
    if (kind === "raw" || !this.#isLfs(content)) {
      const plain = kind === "raw" && this.#isLfs(content) ? pointer(content) : content;
      return this.#send(plain, { ...head, ETag: `"${gitHash(plain)}"` }, request, response);
    }
    const { port } = this.#cdn.address() as AddressInfo;
    response.writeHead(302, {
      ...head,
      ETag: `"${gitHash(pointer(content))}"`,
      "X-Linked-Etag": `"${sha256(content)}"`,
      "X-Linked-Size": content.length,
      // Another origin: the token may not follow.
      Location: `http://127.0.0.1:${port}/${name}/${sha256(content)}?signature=x`,
      "Content-Length": 0,
    });
    return response.end();
  }

  #content(request: IncomingMessage, response: ServerResponse): unknown {
    const url = this.#record("cdn", request);
    const odd = this.faults.status?.(url.pathname);
    if (odd !== undefined) return end(response, odd.status, { error: "odd" }, odd.headers);
    const [, owner, name, hash] = url.pathname.split("/");
    const files = Object.values(this.repositories[`${owner}/${name}`]?.files ?? {});
    const content = files.find((each) => sha256(each) === hash);
    if (content === undefined) return end(response, 403, { error: "AccessDenied" });
    let body = content;
    if (this.faults.pointer) body = pointer(content);
    if (this.faults.corrupt) {
      body = Buffer.from(content);
      body[body.length >> 1]! ^= 1;
    }
    return this.#send(body, { ETag: '"cdn"', "Accept-Ranges": "bytes" }, request, response);
  }

  async #send(
    content: Buffer,
    headers: Record<string, string>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const range = this.faults.ignoreRanges ? null : /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
    const from = Number(range?.[1] ?? 0);
    const to = Math.min(content.length - 1, range?.[2] ? Number(range[2]) : content.length - 1);
    if (range !== null && from >= content.length) {
      return end(response, 416, { error: "range" }, { "Content-Range": `bytes */${content.length}` });
    }
    const body = content.subarray(from, to + 1);
    const partial = range === null ? {} : { "Content-Range": `bytes ${from}-${to}/${content.length}` };
    response.writeHead(range === null ? 200 : 206, { ...headers, ...partial, "Content-Length": body.length });
    if (request.method === "HEAD") return void response.end();
    const { dripMs, dripBytes = 1, cutAfter, stall } = this.faults;
    const cut = cutAfter?.(this.#sent);
    const wanted = cut === undefined ? body : body.subarray(0, cut);
    if (stall?.()) return response.flushHeaders();
    const step = dripMs === undefined ? 1 << 16 : dripBytes;
    for (let at = 0; at < wanted.length; at += step) {
      const chunk = wanted.subarray(at, at + step);
      this.#sent += chunk.length;
      if (response.destroyed) return;
      if (!response.write(chunk)) await drained(response);
      if (dripMs !== undefined) await new Promise((done) => setTimeout(done, dripMs));
    }
    if (wanted.length < body.length) {
      // Written bytes may arrive; then the connection is dead.
      response.socket?.end(() => response.destroy());
    } else {
      response.end();
    }
  }

  #isLfs(content: Buffer): boolean {
    return content.length >= this.lfsFrom;
  }
}

/** Until the client has taken what was written, or has left. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.once("drain", done).once("close", done);
  });
}

export const mainCommit = "0123456789abcdef0123456789abcdef01234567";

function commitOf(repository: TestRepository, revision: string): string | undefined {
  const commit = repository.commit ?? mainCommit;
  if (revision === "main" || revision === "HEAD" || revision === commit) return commit;
  const other = repository.refs?.[revision];
  return other ?? Object.values(repository.refs ?? {}).find((known) => known === revision);
}

export function sha256(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

export function gitHash(content: Buffer): string {
  return createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");
}

function pointer(content: Buffer): Buffer {
  return Buffer.from(
    `version https://git-lfs.github.com/spec/v1\noid sha256:${sha256(content)}\nsize ${content.length}\n`,
  );
}

function end(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}
