import { createHash, randomBytes } from "node:crypto";
import { sameText } from "../text/same.js";
import { type Provider, SignInRefused } from "./providers.js";

export interface GitHubOptions {
  clientId: string;
  clientSecret: string;
  /** For GitHub Enterprise and tests; github.com by default. */
  url?: string;
  apiUrl?: string;
}

/** Signs in through GitHub's OAuth 2 (which has no ID tokens): code flow with state and PKCE. */
export function githubProvider(options: GitHubOptions): Provider {
  const site = options.url ?? "https://github.com";
  const api = options.apiUrl ?? "https://api.github.com";
  const ask = async (path: string, accessToken: string): Promise<unknown> => {
    const answer = await fetch(`${api}${path}`, {
      headers: {
        Authorization: `Bearer ${accessToken}`,
        Accept: "application/vnd.github+json",
        "User-Agent": "tapline-studies",
      },
      redirect: "error",
      signal: AbortSignal.timeout(10_000),
    });
    if (!answer.ok) throw new SignInRefused("GitHub did not return your account; please try again.");
    return answer.json();
  };
  return {
    key: "github",
    label: "GitHub",
    async begin(callback) {
      const secrets = {
        state: randomBytes(32).toString("base64url"),
        nonce: "",
        verifier: randomBytes(32).toString("base64url"),
      };
      const url = new URL("/login/oauth/authorize", site);
      url.search = new URLSearchParams({
        client_id: options.clientId,
        redirect_uri: callback,
        scope: "read:user user:email",
        state: secrets.state,
        code_challenge: createHash("sha256").update(secrets.verifier).digest("base64url"),
        code_challenge_method: "S256",
      }).toString();
      return { url, secrets };
    },
    async finish(callback, secrets) {
      const code = callback.searchParams.get("code");
      if (!sameText(callback.searchParams.get("state") ?? "", secrets.state)) {
        throw new SignInRefused("GitHub's response does not belong to this sign-in; please try again.");
      }
      if (code === null) throw new SignInRefused("GitHub denied the sign-in, or you cancelled it.");
      const answer = await fetch(new URL("/login/oauth/access_token", site), {
        method: "POST",
        headers: { Accept: "application/json", "Content-Type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams({
          client_id: options.clientId,
          client_secret: options.clientSecret,
          code,
          redirect_uri: callback.origin + callback.pathname,
          code_verifier: secrets.verifier,
        }).toString(),
        redirect: "error",
        signal: AbortSignal.timeout(10_000),
      });
      const { access_token: accessToken } = (await answer.json()) as { access_token?: unknown };
      if (typeof accessToken !== "string")
        throw new SignInRefused("GitHub refused the sign-in; please try again.");
      const user = (await ask("/user", accessToken)) as { id?: unknown; login?: unknown; name?: unknown };
      if (typeof user.id !== "number" || typeof user.login !== "string") {
        throw new SignInRefused("GitHub did not return your account; please try again.");
      }
      const emails = (await ask("/user/emails", accessToken)) as {
        email: string;
        primary: boolean;
        verified: boolean;
      }[];
      const primary = emails.find((candidate) => candidate.primary && candidate.verified);
      return {
        issuer: "github",
        subject: String(user.id),
        name: typeof user.name === "string" && user.name !== "" ? user.name : user.login,
        email: primary?.email ?? null,
        login: user.login,
      };
    },
  };
}
