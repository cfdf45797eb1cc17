import * as client from "openid-client";
import { type Provider, SignInRefused } from "./providers.js";

export interface OidcOptions {
  issuer: string;
  clientId: string;
  clientSecret: string;
  label?: string;
}

/** OpenID Connect: code flow with PKCE, state and nonce. Discovery is lazy, so the provider may be down at startup. */
export function oidcProvider({ issuer, clientId, clientSecret, label }: OidcOptions): Provider {
  let found: Promise<client.Configuration> | undefined;
  const configuration = () => {
    if (found === undefined) {
      const url = new URL(issuer);
      // Plain HTTP is allowed on this machine only, for the development provider.
      const plain = url.protocol === "http:" && isLoopback(url) ? [client.allowInsecureRequests] : [];
      // Also verify ID token signatures: TLS alone proves nothing if a proxy terminates it.
      const execute = [...plain, client.enableNonRepudiationChecks];
      found = client.discovery(url, clientId, clientSecret, undefined, { execute });
      found.catch(() => {
        found = undefined;
      });
    }
    return found;
  };
  return {
    key: "oidc",
    label: label ?? new URL(issuer).host,
    async begin(callback) {
      const secrets = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
      };
      const url = client.buildAuthorizationUrl(await configuration(), {
        redirect_uri: callback,
        scope: "openid profile email",
        code_challenge: await client.calculatePKCECodeChallenge(secrets.verifier),
        code_challenge_method: "S256",
        state: secrets.state,
        nonce: secrets.nonce,
      });
      return { url, secrets };
    },
    async finish(callback, secrets) {
      const config = await configuration();
      try {
        const tokens = await client.authorizationCodeGrant(config, callback, {
          pkceCodeVerifier: secrets.verifier,
          expectedState: secrets.state,
          expectedNonce: secrets.nonce,
          idTokenExpected: true,
        });
        const claims = tokens.claims() as client.IDToken;
        const about: Record<string, unknown> =
          config.serverMetadata().userinfo_endpoint === undefined
            ? claims
            : { ...claims, ...(await client.fetchUserInfo(config, tokens.access_token, claims.sub)) };
        return {
          issuer: claims.iss,
          subject: claims.sub,
          name: text(about.name) ?? text(about.preferred_username) ?? text(about.nickname) ?? "Unnamed",
          // An unverified address could belong to anyone.
          email: about.email_verified === true ? text(about.email) : null,
          login: null,
        };
      } catch (error) {
        if (error instanceof client.AuthorizationResponseError) {
          throw new SignInRefused("The provider denied the sign-in, or you cancelled it.");
        }
        if (error instanceof client.ClientError || error instanceof client.ResponseBodyError) {
          throw new SignInRefused("The provider's response failed validation; please try again.");
        }
        throw error;
      }
    },
  };
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

export function isLoopback(url: URL): boolean {
  return ["127.0.0.1", "[::1]", "localhost"].includes(url.hostname);
}
