import { generateKeyPairSync, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider, { type Configuration, type JWK } from "oidc-provider";
import { html } from "../site/html.js";

export interface DevelopmentAccount {
  id: string;
  name: string;
  email: string;
  /** The account's permissions, as shown on the sign-in page. */
  note: string;
}

/** The test accounts of every development service. */
export const developmentAccounts: readonly DevelopmentAccount[] = [
  { id: "ada", name: "Ada Sample", email: "ada@example.org", note: "may create tokens and publish" },
  { id: "ben", name: "Ben Sample", email: "ben@example.org", note: "may create tokens, but not publish" },
  { id: "cleo", name: "Cleo Sample", email: "cleo@example.org", note: "may do neither" },
];

export interface DevelopmentProvider {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Idempotent. */
  close(): Promise<void>;
}

/**
 * Starts an OpenID provider on loopback where anyone can sign in as a test account. For development only.
 */
export async function startDevelopmentProvider(redirectUri: string): Promise<DevelopmentProvider> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = { id: "tapline-studies", secret: randomBytes(24).toString("base64url") };
  const provider = new Provider(issuer, configuration(client, redirectUri));
  provider.use(async (ctx, next) => {
    if (!/^\/interaction\/[\w-]+$/.test(ctx.path)) return next();
    ctx.set("Cache-Control", "no-store");
    if (ctx.method !== "POST") {
      await provider.interactionDetails(ctx.req, ctx.res);
      ctx.type = "html";
      ctx.body = choosePage();
      return;
    }
    let body = "";
    for await (const part of ctx.req) body += part;
    const chosen = developmentAccounts.find(({ id }) => id === new URLSearchParams(body).get("account"));
    const result = chosen
      ? { login: { accountId: chosen.id } }
      : { error: "access_denied", error_description: "cancelled" };
    ctx.respond = false;
    await provider.interactionFinished(ctx.req, ctx.res, result, { mergeWithLastSubmission: false });
  });
  server.on("request", provider.callback());
  let closed: Promise<void> | undefined;
  return {
    issuer,
    clientId: client.id,
    clientSecret: client.secret,
    close() {
      closed ??= new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      return closed;
    },
  };
}

function configuration(client: { id: string; secret: string }, redirectUri: string): Configuration {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return {
    clients: [{ client_id: client.id, client_secret: client.secret, redirect_uris: [redirectUri] }],
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), use: "sig", alg: "RS256" } as JWK] },
    cookies: { keys: [randomBytes(32).toString("hex")] },
    features: { devInteractions: { enabled: false } },
    claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"] },
    interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_ctx, id) => {
      const found = developmentAccounts.find((account) => account.id === id);
      if (found === undefined) return undefined;
      const claims = { sub: found.id, name: found.name, email: found.email, email_verified: true };
      return { accountId: found.id, claims: () => claims };
    },
    // This service is the only client, so no consent is needed.
    async loadExistingGrant(ctx) {
      const grant = new ctx.oidc.provider.Grant({
        clientId: ctx.oidc.client?.clientId,
        accountId: ctx.oidc.session?.accountId,
      });
      grant.addOIDCScope("openid profile email");
      await grant.save();
      return grant;
    },
    // Sessions expire immediately, so that each sign-in asks for an account.
    ttl: { Session: 1, Grant: 600, Interaction: 600, AccessToken: 600, IdToken: 600 },
    renderError(ctx, out) {
      ctx.type = "text";
      ctx.body = `Sign-in failed: ${out.error}`;
    },
  };
}

function choosePage(): string {
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Development sign-in</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head><body><main>
<h1>Development sign-in</h1><p>Choose a test account.</p><form method="post">${developmentAccounts.map(
    ({ id, name, note }) => html`<p><button name="account" value="${id}">${name}</button> ${note}</p>`,
  )}<p><button name="account" value="">Cancel</button></p></form></main></body></html>`.markup;
}
