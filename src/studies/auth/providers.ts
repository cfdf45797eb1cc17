import type { Identity } from "../store/accounts.js";

/** Sign-in state that the browser carries to the provider and back, encrypted (site/sealed.ts). */
export interface Secrets {
  state: string;
  nonce: string;
  verifier: string;
}

/** A way to sign in. */
export interface Provider {
  key: "oidc" | "github";
  /** Button text after "Sign in with". */
  label: string;
  /** The address to send the browser to. */
  begin(callback: string): Promise<{ url: URL; secrets: Secrets }>;
  /**
   * Verifies the callback.
   * @param callback the address, on this service's origin, that the provider redirected to
   */
  finish(callback: URL, secrets: Secrets): Promise<Identity>;
}

export type Providers = readonly Provider[];

/** A sign-in that the provider or our checks refused; the message is shown to the user. */
export class SignInRefused extends Error {
  override name = "SignInRefused";
}
