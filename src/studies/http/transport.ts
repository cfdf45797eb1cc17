import { isIPv6 } from "node:net";
import type { Context } from "koa";
import type { Service } from "../service.js";

function peerOf(ctx: Context): string {
  return (ctx.req.socket.remoteAddress ?? "").replace(/^::ffff:/, "");
}

/** Whether a request used HTTPS, directly or through a trusted proxy that says so. */
export function isSecure(service: Service, ctx: Context): boolean {
  if (service.trustedProxies === null) return (ctx.req.socket as { encrypted?: boolean }).encrypted === true;
  return service.trustedProxies.includes(peerOf(ctx)) && ctx.req.headers["x-forwarded-proto"] === "https";
}

/**
 * The client address that rate limits use: the peer, or behind trusted proxies the last untrusted address in
 * X-Forwarded-For. IPv6 addresses are reduced to their /64 network, since one client controls all of it.
 */
export function clientAddress(service: Service, ctx: Context): string {
  const proxies = service.trustedProxies ?? [];
  let address = peerOf(ctx);
  if (proxies.includes(address)) {
    const forwarded = String(ctx.req.headers["x-forwarded-for"] ?? "").split(",");
    for (const part of forwarded.reverse()) {
      address = part.trim().replace(/^::ffff:/, "") || address;
      if (!proxies.includes(address)) break;
    }
  }
  return isIPv6(address) ? networkOf(address) : address.slice(0, 64);
}

/** The first 64 bits of an IPv6 address. */
function networkOf(address: string): string {
  const [head = "", tail] = (address.split("%")[0] as string).split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const after = tail === "" ? [] : tail.split(":");
    while (groups.length + after.length < 8) groups.push("0");
    groups.push(...after);
  }
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}
