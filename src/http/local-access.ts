import type { IncomingMessage } from "node:http";
import { BlockList, isIPv6 } from "node:net";
import type { Middleware } from "koa";
import { HttpError } from "./errors.js";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Whether an address of a connected peer is this machine's loopback; IPv4-mapped IPv6 counts. */
export function isLoopback(address: string | undefined): boolean {
  if (address === undefined) return false;
  const plain = address.replace(/%.*$/, ""); // without a link-local zone
  return loopback.check(plain, isIPv6(plain) ? "ipv6" : "ipv4");
}

/**
 * Why a request is not known to come from this machine, or null when it is. A reverse proxy on this machine connects from
 * loopback, and by default nginx and Apache send a loopback Host as well, although their clients may be anywhere. Most
 * proxies name themselves in a header. nginx does not, but before 1.29.7 it speaks HTTP/1.0 to its backends, which
 * hardly any other program still does.
 */
export function remoteFault(request: IncomingMessage): string | null {
  if (!isLoopback(request.socket.remoteAddress)) {
    return "Only programs on this machine may use this address; the connection comes from elsewhere.";
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
      "Only programs on this machine may use this address, and over HTTP/1.1; " +
      "HTTP/1.0 is what proxies such as nginx use to forward requests."
    );
  }
  return null;
}

/**
 * Why a request may not use an endpoint that is for programs on this machine only, or null when it may.
 *
 * A page in a browser can reach loopback too, by any name that resolves there; what it cannot do is hide that
 * it is a page (Origin, Sec-Fetch-Site, Cookie) or choose the Host that goes with a rebound name. Sec-Fetch-Mode
 * alone is what Node's own fetch sends; every browser that sends it sends Sec-Fetch-Site as well.
 */
export function localAccessFault(request: IncomingMessage): string | null {
  const remote = remoteFault(request);
  if (remote !== null) return remote;
  if (!request.url?.startsWith("/")) return "The request target must be a path on this server.";
  const hosts = headerValues(request, (name) => name === "host");
  if (hosts.length !== 1) return `Exactly one Host header is needed; the request has ${hosts.length}.`;
  if (!isLocalHost(hosts[0] as string, request.socket.localPort)) {
    return "The Host header must be localhost, 127.0.0.1 or [::1] with this server's port.";
  }
  if (headerValues(request, isBrowserHeader).length > 0) {
    return "Requests from web pages are refused: send no Origin, Sec-Fetch-Site or Cookie header.";
  }
  return null;
}

/** Refuses with 403 every request that is not from a program on this machine, where `applies` says so. */
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

/** What proxies add to a request that they forward. */
function isForwardingHeader(name: string): boolean {
  return name === "via" || name === "forwarded" || name === "x-real-ip" || /^x-forwarded(-|$)/.test(name);
}

function isBrowserHeader(name: string): boolean {
  return name === "origin" || name === "cookie" || name === "sec-fetch-site";
}

/** The values of the headers that are wanted. The raw list is the only one in which a repeated header is still visible. */
export function headerValues(request: IncomingMessage, wanted: (name: string) => boolean): string[] {
  const values: string[] = [];
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    if (wanted((request.rawHeaders[index] as string).toLowerCase())) {
      values.push(request.rawHeaders[index + 1] as string);
    }
  }
  return values;
}
