import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { UserError } from "../../contracts/user-error.js";

/** Hub settings, from the same environment variables as other hub tools. */
export interface HubSettings {
  /** Origin of the hub, without a trailing slash. */
  endpoint: string;
  /** The shared cache folder, which contains `models--owner--name`. */
  cache: string;
  token: string | undefined;
  /** No network requests. */
  offline: boolean;
  /** Milliseconds without data after which a connection is reopened. */
  idleMs: number;
}

const defaultIdleSeconds = 30;

/** Reads HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, HF_TOKEN, HF_HUB_OFFLINE, HF_HUB_DOWNLOAD_TIMEOUT. @throws UserError */
export async function hubSettings(env: NodeJS.ProcessEnv = process.env): Promise<HubSettings> {
  const home = expand(env.HF_HOME || join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "huggingface"));
  return {
    endpoint: endpoint(env.HF_ENDPOINT || "https://huggingface.co"),
    cache: expand(env.HF_HUB_CACHE || env.HUGGINGFACE_HUB_CACHE || join(home, "hub")),
    token: await token(env, env.HF_TOKEN_PATH || join(home, "token")),
    offline: isOn(env.HF_HUB_OFFLINE) || isOn(env.TRANSFORMERS_OFFLINE),
    idleMs: 1000 * (Number(env.HF_HUB_DOWNLOAD_TIMEOUT) || defaultIdleSeconds),
  };
}

function endpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UserError(`HF_ENDPOINT must be an http or https address, got "${text}".`);
  }
  return text.replace(/\/+$/, "");
}

async function token(env: NodeJS.ProcessEnv, path: string): Promise<string | undefined> {
  const given = env.HF_TOKEN || env.HUGGING_FACE_HUB_TOKEN;
  const text = (given ?? (await readFile(expand(path), "utf8").catch(() => ""))).trim();
  if (text === "") return undefined;
  if (!/^[\x21-\x7e]+$/.test(text)) {
    throw new UserError(
      `The hub's token in ${given ? "HF_TOKEN" : path} contains a space or an invalid character.`,
    );
  }
  return text;
}

function expand(path: string): string {
  return path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
}

function isOn(value: string | undefined): boolean {
  return /^(1|on|yes|true)$/i.test(value ?? "");
}
