import type { IncomingMessage } from "node:http";
import { BlockList, isIPv6 } from "node:net";
import type { Middleware } from "koa";
import { HttpError } from "./errors.js";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Whether a peer's address is loopback, including IPv4-mapped IPv6. */
export function isLoopback(address: string | undefined): boolean {
  if (address === undefined) return false;
  if (address === "127.0.0.1" || address === "::1") return true; // a look into the list takes 10 µs
  const plain = address.replace(/%.*$/, ""); // without a link-local zone
  return loopback.check(plain, isIPv6(plain) ? "ipv6" : "ipv4");
}

/**
 * Why a request may come from another machine, or null if it comes from this one. A reverse proxy on this machine connects
 * from loopback, and nginx and Apache by default also send a loopback Host, wherever their clients are. Most proxies add a
 * header. nginx does not, but before 1.29.7 it uses HTTP/1.0 for its backends, which few other programs do.
 */
export function remoteFault(request: IncomingMessage): string | null {
  if (!isLoopback(request.socket.remoteAddress)) {
    return "Only programs on this machine may use this address; the connection comes from another machine.";
  }
  const { rawHeaders, httpVersion } = request;
  const header = rawHeaders.find((name, index) => index % 2 === 0 && isForwardingHeader(name.toLowerCase()));
  if (header !== undefined) {
    return (
      "Only programs on this machine may use this address; " +
      `the header ${header.slice(0, 60)} shows that a proxy forwarded the request.`
    );
  }
  if (httpVersion === "1.0") {
    return (
      "Only programs on this machine may use this address, over HTTP/1.1; " +
      "HTTP/1.0 is used by proxies such as nginx."
    );
  }
  return null;
}

/**
 * Why a request may not use an endpoint for programs on this machine, or null if it may.
 *
 * A web page can also reach loopback, by any name that resolves to it, but it cannot hide that it is a page (Origin,
 * Sec-Fetch-Site, Cookie) or forge the Host header of a rebound name. Sec-Fetch-Mode alone comes from Node's fetch;
 * browsers that send it also send Sec-Fetch-Site.
 */
export function localAccessFault(request: IncomingMessage): string | null {
  const remote = remoteFault(request);
  if (remote !== null) return remote;
  if (!request.url?.startsWith("/")) return "The request target must be a path on this server.";
  const hosts = headerValues(request, (name) => name === "host");
  if (hosts.length !== 1) return `Exactly one Host header is required, got ${hosts.length}.`;
  if (!isLocalHost(hosts[0] as string, request.socket.localPort)) {
    return "The Host header must be localhost, 127.0.0.1 or [::1] with this server's port.";
  }
  if (headerValues(request, isBrowserHeader).length > 0) {
    return "Requests from web pages are rejected: do not send Origin, Sec-Fetch-Site or Cookie headers.";
  }
  return null;
}

/** Rejects with 403 every request not from a program on this machine, for paths that `applies` accepts. */
export function localAccess(applies: (path: string) => boolean = () => true): Middleware {
  return (ctx, next) => {
    if (applies(ctx.path)) {
      const fault = localAccessFault(ctx.req);
      if (fault !== null) throw new HttpError(403, fault);
    }
    return next();
  };
}

function isLocalHost(host: string, port: number | undefined): boolean {
  const name = host.toLowerCase();
  const names = ["localhost", "127.0.0.1", "[::1]"];
  return names.some((local) => name === `${local}:${port}` || (port === 80 && name === local));
}

/** Headers that proxies add to forwarded requests. */
function isForwardingHeader(name: string): boolean {
  return name === "via" || name === "forwarded" || name === "x-real-ip" || /^x-forwarded(-|$)/.test(name);
}

function isBrowserHeader(name: string): boolean {
  return name === "origin" || name === "cookie" || name === "sec-fetch-site";
}

/** Values of the wanted headers. Only the raw list shows repeated headers. */
export function headerValues(request: IncomingMessage, wanted: (name: string) => boolean): string[] {
  const values: string[] = [];
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    if (wanted((request.rawHeaders[index] as string).toLowerCase())) {
      values.push(request.rawHeaders[index + 1] as string);
    }
  }
  return values;
}
