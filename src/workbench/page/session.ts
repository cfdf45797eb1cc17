/** Who this browser is to the service: a cookie that no script sees, and a secret in this origin's storage. */
const storageKey = "tapline-workbench";
const header = "X-Tapline-Workbench";

/** A refusal with the service's sentence. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, sentence: string) {
    super(sentence);
    this.status = status;
  }
}

/** For `.catch`: nothing where the service has no such thing, or not any more. */
export function unlessGone(error: Error): void {
  if (!(error instanceof Refusal && error.status === 404)) throw error;
}

let onSignedOut = (_sentence: string) => {};

/** Hears when the service does not know this browser any more. */
export function whenSignedOut(heard: (sentence: string) => void): void {
  onSignedOut = heard;
}

const tokenPattern = /^#([A-Za-z0-9_-]{43})$/;

/** Whether the address holds a link's token. */
export function holdsToken(): boolean {
  return tokenPattern.test(location.hash);
}

/**
 * Takes a link's token out of the address, before anything else can see it, and shows it.
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
      // An old link in a browser that is signed in already does no harm.
      if (localStorage.getItem(storageKey) === null) return (error as Error).message;
    }
  }
  if (localStorage.getItem(storageKey) !== null) return undefined;
  return "This browser is not signed in. Open the link that `tapline workbench` prints; `tapline workbench --link` prints another.";
}

export function forget(): void {
  localStorage.removeItem(storageKey);
}

export interface Call {
  method?: "GET" | "POST" | "DELETE";
  body?: unknown;
  signal?: AbortSignal;
}

/** Asks the service and reads its JSON. @throws Refusal */
export async function call<T>(path: string, options: Call = {}): Promise<T> {
  return (await open(path, options)).json() as Promise<T>;
}

/** Sends the service something. @throws Refusal */
export function post<T>(path: string, body?: unknown): Promise<T> {
  return call<T>(path, { method: "POST", body });
}

/** The same for an answer that is not JSON. */
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
    throw new Refusal(0, "The workbench's service does not answer. Is `tapline workbench` still running?");
  }
  if (response.ok) return response;
  const told = (await response.json().catch(() => undefined)) as { error?: string } | undefined;
  const sentence = told?.error ?? `${path} was answered with status ${response.status}.`;
  if (response.status === 401 && path !== "/api/session") {
    forget();
    onSignedOut(sentence);
  }
  throw new Refusal(response.status, sentence);
}
