import type { Context } from "koa";
import type { Scope } from "../../contracts/studies/index.js";
import { ApiError } from "../api-error.js";
import type { Service } from "../service.js";
import { admit, type Credential } from "../store/admission.js";
import type { Counters } from "../store/counters.js";
import { isTokenShaped, sha256Hex } from "../store/tokens.js";
import { setQuotaHeaders } from "./quota-headers.js";

export interface Admitted {
  credential: Credential;
  /** What the token's check saw of the public state. */
  counters: Counters;
}

/**
 * The checks between route and parameters, in the contract's order: no browser, a token, its quota, its scope.
 * @param onCredential told whose request it is as soon as that is known, refused or not
 */
export async function authenticate(
  service: Service,
  ctx: Context,
  scope: Scope,
  onCredential: (credential: Credential) => void,
): Promise<Admitted> {
  for (const name of ["origin", "cookie"] as const) {
    if (ctx.req.headers[name] !== undefined) {
      throw new ApiError("browser_request", `The API is not for browsers: send no ${title(name)} header.`, {
        field: title(name),
      });
    }
  }
  const admission = await admit(service.store, sha256Hex(readToken(ctx)));
  switch (admission.outcome) {
    case "invalid":
      throw refused("token_invalid", "The service does not know this token.");
    case "expired":
      throw refused("token_expired", `The token has expired; create another at ${service.origin}/agents.`);
    case "revoked":
      throw revoked(service);
    case "exhausted": {
      const { limit, resetSeconds } = admission.window;
      onCredential(admission.credential);
      setQuotaHeaders(ctx, admission.window);
      throw new ApiError(
        "request_quota",
        `The token's ${limit} requests in 60 seconds are used up; wait ${resetSeconds} s.`,
        { headers: { "Retry-After": String(resetSeconds) } },
      );
    }
  }
  onCredential(admission.credential);
  setQuotaHeaders(ctx, admission.window);
  if (!admission.credential.scopes.includes(scope)) {
    throw new ApiError(
      "scope_missing",
      `The token lacks the scope ${scope}; create one that has it at ${service.origin}/agents.`,
      { field: scope },
    );
  }
  return { credential: admission.credential, counters: admission.counters };
}

export function revoked(service: Service): ApiError {
  return refused("token_revoked", `The token was revoked; create another at ${service.origin}/agents.`);
}

function readToken(ctx: Context): string {
  const header = ctx.req.headers.authorization;
  if (header === undefined) {
    throw refused(
      "token_missing",
      "The request has no Authorization header; send Bearer and a token.",
      false,
    );
  }
  const token = /^Bearer +(\S+)$/i.exec(header)?.[1] ?? "";
  if (!isTokenShaped(token)) {
    throw refused(
      "token_invalid",
      "The Authorization header is not Bearer followed by a token of this service.",
    );
  }
  return token;
}

function refused(
  code: "token_missing" | "token_invalid" | "token_expired" | "token_revoked",
  sentence: string,
  told = true,
) {
  return new ApiError(code, sentence, {
    field: "Authorization",
    headers: { "WWW-Authenticate": `Bearer realm="tapline studies"${told ? ', error="invalid_token"' : ""}` },
  });
}

function title(name: string): string {
  return (name[0] as string).toUpperCase() + name.slice(1);
}
