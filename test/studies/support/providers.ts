/** Providers of sign-ins as servers of a test's own: what they are asked, and what they answer. */
import { createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Requests that a provider received. */
export interface Asked {
  /** Method and path. */
  line: string;
  authorization: string;
  type: string;
  body: string;
}

export interface TestProvider {
  url: string;
  asked: Asked[];
  close(): void;
}

export function json(response: ServerResponse, body: object | null, status = 200): void {
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}

export async function startProvider(
  answer: (path: string, response: ServerResponse, url: string) => void,
): Promise<TestProvider> {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const { authorization = "", "content-type": type = "" } = request.headers;
    const body = Buffer.concat(parts).toString();
    asked.push({ line: `${request.method} ${request.url}`, authorization, type, body });
    answer(request.url as string, response, url);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    asked,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

export interface OidcProvider extends TestProvider {
  /** Parameters that started the current sign-in; copied into the ID token. */
  nonce: string | null;
  /** The key that signs ID tokens; the published key is a different one where a test says so. */
  signedWith: KeyObject;
  /** Replaces the provider's own responses, by path. */
  instead: Record<string, (response: ServerResponse) => void>;
}

/**
 * An OpenID provider. @param claims in its ID tokens, on top of the correct ones @param userInfo its user-info
 * response; null where it has no such endpoint
 */
export async function startOidc(claims: object, userInfo: object | null = null): Promise<OidcProvider> {
  const oidc: OidcProvider = {
    ...(await startProvider((path, response, url) => {
      const instead = oidc.instead[path];
      if (instead !== undefined) return instead(response);
      switch (path) {
        case "/.well-known/openid-configuration":
          return json(response, {
            issuer: url,
            authorization_endpoint: `${url}/authorize`,
            token_endpoint: `${url}/token`,
            ...(userInfo === null ? {} : { userinfo_endpoint: `${url}/about` }),
            jwks_uri: `${url}/keys`,
            response_types_supported: ["code"],
            subject_types_supported: ["public"],
            id_token_signing_alg_values_supported: ["RS256"],
          });
        case "/keys": {
          const key = { ...pair.publicKey.export({ format: "jwk" }), kid: "1", use: "sig", alg: "RS256" };
          return json(response, { keys: [key] });
        }
        case "/about":
          return json(response, userInfo);
        default: {
          const now = Math.floor(Date.now() / 1000);
          const payload = { iss: url, aud: "c", sub: "7", iat: now, exp: now + 3600, nonce: oidc.nonce };
          const head = `${base64({ alg: "RS256", kid: "1" })}.${base64({ ...payload, ...claims })}`;
          const signature = createSign("sha256").update(head).sign(oidc.signedWith, "base64url");
          return json(response, {
            access_token: "a",
            token_type: "Bearer",
            id_token: `${head}.${signature}`,
          });
        }
      }
    })),
    nonce: null,
    signedWith: pair.privateKey,
    instead: {},
  };
  return oidc;
}
