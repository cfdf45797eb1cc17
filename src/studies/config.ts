import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { dirname, resolve } from "node:path";
import Type, { type Static } from "typebox";
import { studiesPort } from "../contracts/studies/index.js";
import { UserError } from "../contracts/user-error.js";
import { validate } from "../contracts/validate.js";
import { githubProvider } from "./auth/github.js";
import { isLoopback, oidcProvider } from "./auth/oidc.js";
import type { Provider, Providers } from "./auth/providers.js";
import type { StudiesOptions } from "./start.js";
import { databaseUrl } from "./store/location.js";

const strict = { additionalProperties: false };
const text = (description: string) => Type.String({ minLength: 1, description });

/** The production configuration file. Secrets come from environment variables. */
export const StudiesConfig = Type.Object(
  {
    origin: text("Public origin, such as https://studies.example.org."),
    host: Type.Optional(text("Address to listen on; default: all addresses with tls, else 127.0.0.1.")),
    port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })),
    database: Type.Optional(text("Path of the SQLite file; set DATABASE_URL to use PostgreSQL instead.")),
    tls: Type.Optional(
      Type.Object(
        { certificate: text("PEM file."), key: text("PEM file.") },
        { ...strict, description: "TLS certificate of this service." },
      ),
    ),
    trusted_proxies: Type.Optional(
      Type.Array(text("IP address of a proxy that terminates TLS and sets X-Forwarded-Proto."), {
        minItems: 1,
      }),
    ),
    oidc: Type.Optional(
      Type.Object(
        {
          issuer: text("Issuer URL."),
          client_id: text("Client id."),
          label: Type.Optional(text("Label of the sign-in button.")),
        },
        strict,
      ),
    ),
    github: Type.Optional(Type.Object({ client_id: text("Client id of the OAuth app.") }, strict)),
    security_contact: Type.Optional(
      text("Where to report vulnerabilities: an email address, or an https: or mailto: URL."),
    ),
    disable_file: Type.Optional(text("While this file exists, the API answers 503.")),
  },
  { ...strict, title: "StudiesConfig" },
);
export type StudiesConfig = Static<typeof StudiesConfig>;

type Environment = Record<string, string | undefined>;

/**
 * Reads a configuration file; relative paths in it are relative to its folder.
 * @param env DATABASE_URL, TAPLINE_OIDC_CLIENT_SECRET, TAPLINE_GITHUB_CLIENT_SECRET
 * @throws UserError
 */
export function readConfig(path: string, env: Environment): StudiesOptions {
  let config: StudiesConfig;
  try {
    config = validate(StudiesConfig, JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code?.startsWith("E")) throw new UserError(`Cannot read the configuration ${path} (${code}).`);
    throw new UserError(`The configuration ${path} is invalid: ${message}`);
  }
  const file = (name: string) => resolve(dirname(path), name);
  const origin = originOf(config.origin);
  if ((config.tls === undefined) === (config.trusted_proxies === undefined)) {
    throw new UserError(
      "The configuration needs either tls (a certificate) or trusted_proxies, but not both.",
    );
  }
  for (const address of config.trusted_proxies ?? []) {
    if (isIP(address) === 0) throw new UserError(`trusted_proxies must be IP addresses, got ${address}.`);
  }
  if (config.oidc !== undefined) checkIssuer(config.oidc.issuer);
  const readTls = () => ({
    cert: read(file(config.tls?.certificate as string)),
    key: read(file(config.tls?.key as string)),
  });
  return {
    origin,
    host: config.host ?? (config.tls ? "::" : "127.0.0.1"),
    port: config.port ?? studiesPort,
    database: databaseUrl(env) ?? file(sqlitePath(config.database ?? "studies.db")),
    tls: config.tls ? readTls() : null,
    ...(config.tls ? { renewedTls: readTls } : {}),
    trustedProxies: config.trusted_proxies ?? null,
    disableFile: file(config.disable_file ?? "api-disabled"),
    metricsToken: metricsTokenOf(env),
    securityContact: config.security_contact === undefined ? null : contactOf(config.security_contact),
    providers: () => providersOf(config, env),
  };
}

/** @param env TAPLINE_METRICS_TOKEN */
function metricsTokenOf(env: Environment): string | null {
  const token = env.TAPLINE_METRICS_TOKEN;
  if (token === undefined) return null;
  if (!/^[\x21-\x7e]{16,}$/.test(token)) {
    throw new UserError(
      `TAPLINE_METRICS_TOKEN must be at least 16 visible ASCII characters, got ${token.length} characters.`,
    );
  }
  return token;
}

function contactOf(given: string): string {
  const url = urlOf(/^[^\s@:/]+@[^\s@:/]+$/.test(given) ? `mailto:${given}` : given);
  if (url?.protocol === "https:" || url?.protocol === "mailto:") return url.href;
  throw new UserError(
    `security_contact must be an email address, or an https: or mailto: URL, got ${given}.`,
  );
}

function urlOf(given: string): URL | undefined {
  return URL.canParse(given) ? new URL(given) : undefined;
}

function checkIssuer(given: string): void {
  const url = urlOf(given);
  if (url === undefined)
    throw new UserError(`oidc.issuer must be a URL such as https://login.example.org, got ${given}.`);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopback(url)))
    throw new UserError(`oidc.issuer must use https, or http on this machine, got ${given}.`);
}

/** Rejects URLs, which would create a file named after the URL, password included. */
function sqlitePath(given: string): string {
  if (/^\s*[a-z][a-z0-9+.-]*:\/\//i.test(given)) {
    throw new UserError(
      "database must be the path of an SQLite file, not a URL; set DATABASE_URL to use PostgreSQL.",
    );
  }
  return given;
}

function originOf(given: string): string {
  const url = urlOf(given);
  if (url === undefined)
    throw new UserError(`origin must be a URL such as https://studies.example.org, got ${given}.`);
  if (url.protocol !== "https:" || url.origin !== given.replace(/\/$/, "")) {
    throw new UserError(`origin must be https:// and a host, without a path, got ${given}.`);
  }
  return url.origin;
}

function providersOf({ oidc, github }: StudiesConfig, env: Environment): Providers {
  const secret = (name: string) => {
    const value = env[name];
    if (value === undefined || value === "")
      throw new UserError(`The environment variable ${name} is not set.`);
    return value;
  };
  const providers: Provider[] = [];
  if (oidc !== undefined) {
    const { client_id: clientId, ...rest } = oidc;
    providers.push(oidcProvider({ ...rest, clientId, clientSecret: secret("TAPLINE_OIDC_CLIENT_SECRET") }));
  }
  if (github !== undefined) {
    const clientSecret = secret("TAPLINE_GITHUB_CLIENT_SECRET");
    providers.push(githubProvider({ clientId: github.client_id, clientSecret }));
  }
  return providers;
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UserError(`Cannot read ${path} (${(error as NodeJS.ErrnoException).code}).`);
  }
}
