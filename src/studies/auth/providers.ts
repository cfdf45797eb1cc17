import type { Identity } from "../store/accounts.js";

/** What a sign-in must remember between leaving and coming back; carried by the browser, sealed (site/sealed.ts). */
export interface Secrets {
  state: string;
  nonce: string;
  verifier: string;
}

/** A way to sign in. */
export interface Provider {
  key: "oidc" | "github";
  /** What the button says after "Sign in with". */
  label: string;
  /** Where the browser goes. */
  begin(callback: string): Promise<{ url: URL; secrets: Secrets }>;
  /**
   * Checks what came back.
   * @param callback the address that the provider sent the browser to, on this service's own origin
   */
  finish(callback: URL, secrets: Secrets): Promise<Identity>;
}

export type Providers = readonly Provider[];

/** A sign-in that the provider or the checks refused; the sentence is for the person. */
export class SignInRefused extends Error {
  override name = "SignInRefused";
}
