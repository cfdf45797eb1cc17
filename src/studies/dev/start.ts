import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../../contracts/user-error.js";
import { oidcProvider } from "../auth/oidc.js";
import type { Provider } from "../auth/providers.js";
import { type RunningStudies, startStudies } from "../start.js";
import { approve } from "../store/approvals.js";
import { listStudies } from "../store/studies.js";
import { developmentCertificate } from "./certificate.js";
import { type DevelopmentProvider, startDevelopmentProvider } from "./provider.js";
import { seed } from "./seed.js";

export interface DevelopmentOptions {
  /** Holds the database and the certificate. */
  folder: string;
  port: number;
  seedData: boolean;
  /** PostgreSQL URL; default: an SQLite file in the folder. */
  database?: string;
  env: Record<string, string | undefined>;
  log?: (line: string) => void;
}

export interface RunningDevelopment extends RunningStudies {
  /** PEM file to give clients as their CA. */
  certificateFile: string;
}

/**
 * Starts the whole service on loopback: HTTPS with a self-signed certificate, an OpenID provider with three test
 * accounts, and sample studies on request. Refuses to start in production.
 */
export async function startDevelopment(options: DevelopmentOptions): Promise<RunningDevelopment> {
  if (options.env.NODE_ENV === "production") {
    throw new UserError(
      "--dev lets anyone sign in as a test account, so it does not start when NODE_ENV is production.",
    );
  }
  mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  const { tls, certificateFile } = await storedCertificate(options.folder);
  let provider: DevelopmentProvider | undefined;
  const running = await startStudies({
    origin: `https://localhost:${options.port}`,
    host: "127.0.0.1",
    port: options.port,
    database: options.database ?? join(options.folder, "studies.db"),
    tls,
    trustedProxies: null,
    disableFile: join(options.folder, "api-disabled"),
    async providers(origin) {
      provider = await startDevelopmentProvider(`${origin}/sign-in/oidc/callback`);
      const oidc = oidcProvider({ ...provider, label: "a test account" });
      // The provider's port changes at each start, so accounts are stored under a fixed issuer.
      const finish: Provider["finish"] = async (callback, secrets) => ({
        ...(await oidc.finish(callback, secrets)),
        issuer: "tapline development",
      });
      return [{ ...oidc, finish }];
    },
    log: options.log,
  }).catch(async (error) => {
    await provider?.close();
    throw error;
  });
  const { store } = running.service;
  await approve(store, "agent", "ada@example.org");
  await approve(store, "publisher", "ada@example.org");
  await approve(store, "agent", "ben@example.org");
  if (options.seedData && (await listStudies(store, "", 1, 0)).total === 0) await seed(store);
  return {
    ...running,
    certificateFile,
    async close() {
      await running.close();
      await provider?.close();
    },
  };
}

const dayMs = 86_400_000;

async function storedCertificate(folder: string) {
  const certificateFile = join(folder, "development-certificate.pem");
  const keyFile = join(folder, "development-key.pem");
  const made = existsSync(join(folder, "development-certificate.json"))
    ? Number(JSON.parse(readFileSync(join(folder, "development-certificate.json"), "utf8")).made)
    : 0;
  if (Date.now() - made > 20 * dayMs || !existsSync(certificateFile) || !existsSync(keyFile)) {
    const { cert, key } = await developmentCertificate();
    writeFileSync(keyFile, key, { mode: 0o600 });
    chmodSync(keyFile, 0o600);
    writeFileSync(certificateFile, cert);
    writeFileSync(join(folder, "development-certificate.json"), JSON.stringify({ made: Date.now() }));
  }
  return {
    certificateFile,
    tls: { cert: readFileSync(certificateFile, "utf8"), key: readFileSync(keyFile, "utf8") },
  };
}
