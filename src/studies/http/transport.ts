import { isIPv6 } from "node:net";
import type { Context } from "koa";
import type { Service } from "../service.js";

function peerOf(ctx: Context): string {
  return (ctx.req.socket.remoteAddress ?? "").replace(/^::ffff:/, "");
}

/** Whether a request came by HTTPS: to this process, or to a named proxy that says so. */
export function isSecure(service: Service, ctx: Context): boolean {
  if (service.trustedProxies === null) return (ctx.req.socket as { encrypted?: boolean }).encrypted === true;
  return service.trustedProxies.includes(peerOf(ctx)) && ctx.req.headers["x-forwarded-proto"] === "https";
}

/**
 * Where a request comes from, as limits count it: the peer, or behind named proxies the last address in
 * X-Forwarded-For that is none of them. Of IPv6 the network, for whoever has one address there has all of it.
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
