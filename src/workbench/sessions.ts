import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { workbenchLimits } from "../contracts/workbench-limits.js";

/**
 * The sessions of this workbench. A link's token opens one session, once. A session has two parts: a cookie, which scripts
 * cannot read, and a secret, which the page stores for its origin and sends as a header. Browsers send cookies of 127.0.0.1
 * to every port, so another user's server could get the cookie, but it never gets the secret.
 */
export class Sessions {
  #links: { hash: Buffer; expires: number }[] = [];
  #sessions: { cookie: Buffer; secret: Buffer }[] = [];

  constructor(private readonly now: () => number = Date.now) {}

  /** A token for one browser, for ten minutes. */
  link(): string {
    const token = randomSecret();
    this.#links = [
      ...this.#fresh().slice(1 - workbenchLimits.sessions),
      { hash: digest(token), expires: this.now() + workbenchLimits.link_ms },
    ];
    return token;
  }

  /** Redeems a token, which is then invalid. */
  redeem(token: string): { cookie: string; secret: string } | undefined {
    const links = this.#fresh();
    const given = digest(token);
    const found = links.findIndex(({ hash }) => timingSafeEqual(hash, given));
    if (found < 0) return undefined;
    this.#links = links.toSpliced(found, 1);
    const [cookie, secret] = [randomSecret(), randomSecret()];
    this.#sessions = [
      ...this.#sessions.slice(1 - workbenchLimits.sessions),
      { cookie: digest(cookie), secret: digest(secret) },
    ];
    return { cookie, secret };
  }

  /** Whether both parts belong to one session. */
  holds(cookie: string, secret: string): boolean {
    const [first, second] = [digest(cookie), digest(secret)];
    let found = false;
    for (const session of this.#sessions) {
      const same = [timingSafeEqual(session.cookie, first), timingSafeEqual(session.secret, second)];
      if (same.every(Boolean)) found = true;
    }
    return found;
  }

  /** Ends every session; unused links stay valid. */
  endAll(): void {
    this.#sessions = [];
  }

  #fresh() {
    return this.#links.filter(({ expires }) => expires > this.now());
  }
}

export function randomSecret(): string {
  return randomBytes(32).toString("base64url");
}

export function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
