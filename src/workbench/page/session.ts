/** This browser's session: a cookie that scripts cannot read, and a secret in this origin's storage. */
const storageKey = "tapline-workbench";
const header = "X-Tapline-Workbench";

/** An error response with the service's message. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, sentence: string) {
    super(sentence);
    this.status = status;
  }
}

/** For `.catch`: ignores 404, for things that have been deleted. */
export function unlessGone(error: Error): void {
  if (!(error instanceof Refusal && error.status === 404)) throw error;
}

let onSignedOut = (_sentence: string) => {};

/** Registers what happens when the service no longer accepts this session. */
export function whenSignedOut(listener: (sentence: string) => void): void {
  onSignedOut = listener;
}

const tokenPattern = /^#([A-Za-z0-9_-]{43})$/;

/** Whether the address contains a sign-in token. */
export function hasLinkToken(): boolean {
  return tokenPattern.test(location.hash);
}

/**
 * Removes the sign-in token from the address before anything else can see it, and redeems it.
 * @returns why this browser is not signed in, or undefined
 */
export async function signIn(): Promise<string | undefined> {
  const token = tokenPattern.exec(location.hash)?.[1];
  if (token !== undefined) {
    history.replaceState(null, "", location.pathname + location.search);
    try {
      const { secret } = await post<{ secret: string }>("/api/session", { token });
      localStorage.setItem(storageKey, secret);
    } catch (error) {
      // An old link is harmless in a browser that is already signed in.
      if (localStorage.getItem(storageKey) === null) return (error as Error).message;
    }
  }
  if (localStorage.getItem(storageKey) !== null) return undefined;
  return "You're not signed in. Open the link that `tapline workbench` printed.";
}

export function forget(): void {
  localStorage.removeItem(storageKey);
}

export interface Call {
  method?: "GET" | "POST" | "DELETE";
  body?: unknown;
  signal?: AbortSignal;
}

/** Calls the service and parses its JSON. @throws Refusal */
export async function call<T>(path: string, options: Call = {}): Promise<T> {
  return (await open(path, options)).json() as Promise<T>;
}

/** Posts JSON to the service. @throws Refusal */
export function post<T>(path: string, body?: unknown): Promise<T> {
  return call<T>(path, { method: "POST", body });
}

/** Calls the service without parsing the response. @throws Refusal */
export async function open(path: string, { method = "GET", body, signal }: Call = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers: {
        [header]: localStorage.getItem(storageKey) ?? "",
        ...(method === "GET" ? {} : { "Content-Type": "application/json" }),
      },
      ...(method === "GET" ? {} : { body: JSON.stringify(body ?? {}) }),
      ...(signal && { signal }),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refusal(0, "Can't reach the workbench. Is `tapline workbench` still running?");
  }
  if (response.ok) return response;
  const refused = (await response.json().catch(() => undefined)) as { error?: string } | undefined;
  const sentence = refused?.error ?? `${path} returned status ${response.status}.`;
  if (response.status === 401 && path !== "/api/session") {
    forget();
    onSignedOut(sentence);
  }
  throw new Refusal(response.status, sentence);
}
