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
  /** Public state at the time of the token check. */
  counters: Counters;
}

/**
 * The checks between route and parameters, in the contract's order: not from a browser, valid token, quota left, scope granted.
 * @param onCredential called with the token's owner as soon as it is known, even if the request is then refused
 */
export async function authenticate(
  service: Service,
  ctx: Context,
  scope: Scope,
  onCredential: (credential: Credential) => void,
): Promise<Admitted> {
  for (const name of ["origin", "cookie"] as const) {
    if (ctx.req.headers[name] !== undefined) {
      throw new ApiError(
        "browser_request",
        `The API does not accept browser requests: remove the ${title(name)} header.`,
        {
          field: title(name),
        },
      );
    }
  }
  const admission = await admit(service.store, sha256Hex(readToken(ctx)));
  switch (admission.outcome) {
    case "invalid":
      throw refused("token_invalid", "This token does not exist.");
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
        `The token has used its ${limit} requests per 60 seconds; wait ${resetSeconds} s.`,
        { headers: { "Retry-After": String(resetSeconds) } },
      );
    }
  }
  onCredential(admission.credential);
  setQuotaHeaders(ctx, admission.window);
  if (!admission.credential.scopes.includes(scope)) {
    throw new ApiError(
      "scope_missing",
      `The token lacks the scope ${scope}; create one with it at ${service.origin}/agents.`,
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
      "The Authorization header is missing; send `Bearer` followed by a token.",
      false,
    );
  }
  const token = /^Bearer +(\S+)$/i.exec(header)?.[1] ?? "";
  if (!isTokenShaped(token)) {
    throw refused(
      "token_invalid",
      "The Authorization header must be `Bearer` followed by a token of this service.",
    );
  }
  return token;
}

function refused(
  code: "token_missing" | "token_invalid" | "token_expired" | "token_revoked",
  sentence: string,
  given = true,
) {
  return new ApiError(code, sentence, {
    field: "Authorization",
    headers: {
      "WWW-Authenticate": `Bearer realm="tapline studies"${given ? ', error="invalid_token"' : ""}`,
    },
  });
}

function title(name: string): string {
  return (name[0] as string).toUpperCase() + name.slice(1);
}
