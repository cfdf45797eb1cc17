/** Requests to the website without a network: a browser's request, and the response. */
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { Readable } from "node:stream";
import Koa, { type Context, type Middleware } from "koa";
import { Metrics } from "../../../src/studies/metrics.js";
import type { Service } from "../../../src/studies/service.js";
import { site } from "../../../src/studies/site/middleware.js";
import type { Store } from "../../../src/studies/store/store.js";
import { VersionedCache } from "../../../src/studies/store/versioned-cache.js";

export interface Sent {
  method?: string;
  headers?: Record<string, string>;
  /** Sent as a form of the site's own, by POST. */
  form?: Record<string, string>;
  cookies?: Record<string, string>;
  /** In place of a form. */
  body?: string | Buffer;
  /** Where it comes from. */
  address?: string;
}

export interface Got {
  status: number;
  text: string;
  location: string | undefined;
  /** Set-Cookie headers, each without its name, by name. */
  cookies: Record<string, string>;
  header(name: string): string;
}

/** What pages need of a running service. */
export function serviceOf(store: Store, change: Partial<Service> = {}): Service & { lines: string[] } {
  const lines: string[] = [];
  return {
    ...{ store, origin: "https://studies.example.org", trustedProxies: null, disableFile: "/nowhere" },
    ...{ activity: { flush: async () => {} } as Service["activity"], providers: [] },
    ...{ metrics: new Metrics(), metricsToken: null, securityContact: null },
    ...{ lists: new VersionedCache(5), pages: new VersionedCache(5), log: (line) => void lines.push(line) },
    ...{ lines, ...change },
  };
}

/** Everything of a body, whatever it comes as. */
async function bytesOf(body: unknown): Promise<Buffer> {
  if (!(body instanceof Readable)) return Buffer.isBuffer(body) ? body : Buffer.from(String(body ?? ""));
  const parts: Buffer[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
}

/** Requests a service's pages as a user's browser. @param answer another part of the service than its pages */
export function visitor(service: Service, answer: Middleware = site(service)) {
  return async (url: string, sent: Sent = {}): Promise<Got> => {
    const { method = sent.form === undefined ? "GET" : "POST", headers = {}, cookies = {} } = sent;
    const socket = Object.assign(new Socket(), { encrypted: true });
    Object.defineProperty(socket, "remoteAddress", { value: sent.address ?? "192.0.2.1" });
    const request = Object.assign(new IncomingMessage(socket), { method, url });
    const cookie = Object.entries(cookies).map(([name, value]) => `${name}=${value}`);
    const all = {
      ...(cookie.length === 0 ? {} : { Cookie: cookie.join("; ") }),
      ...(sent.form === undefined
        ? {}
        : { "Content-Type": "application/x-www-form-urlencoded", Origin: service.origin }),
      ...headers,
    };
    for (const [name, value] of Object.entries(all)) request.headers[name.toLowerCase()] = value;
    request.push(sent.body ?? new URLSearchParams(sent.form).toString());
    request.push(null);
    const ctx = new Koa().createContext(request, new ServerResponse(request)) as Context;
    await answer(ctx as never, async () => {
      throw new Error("It answers everything.");
    });
    const set = [ctx.response.headers["set-cookie"] ?? []].flat();
    return {
      status: ctx.status,
      text: (await bytesOf(ctx.body)).toString("utf8"),
      location: ctx.response.headers.location as string | undefined,
      cookies: Object.fromEntries(set.map((line) => /^([^=]*)=(.*)$/.exec(line)?.slice(1) ?? [line, ""])),
      header: (name) => ctx.response.get(name) ?? "",
    };
  };
}
