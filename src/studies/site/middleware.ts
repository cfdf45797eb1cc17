import type { Middleware } from "koa";
import type { Service } from "../service.js";

export function site(_service: Service): Middleware {
  return async (_ctx, next) => next();
}
