/** Signing in at the development service as a browser does, without one. */

import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { request as plainRequest } from "node:http";
import { request as secureRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { developmentCertificate } from "../../src/studies/dev/certificate.js";
import { type RunningDevelopment, startDevelopment } from "../../src/studies/dev/start.js";
import { unescaped } from "./support/markup.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-dev-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

interface Page {
  status: number;
  text: string;
  location: string | undefined;
  /** Set-Cookie headers as they came. */
  cookies: string[];
}

/** Asks with the cookies of a jar, and keeps what comes. */
function ask(jar: Map<string, string>, url: string, form?: Record<string, string>): Promise<Page> {
  const { protocol, origin } = new URL(url);
  return new Promise((resolve, reject) => {
    const outgoing = (protocol === "https:" ? secureRequest : plainRequest)(
      url.replace("//localhost", "//127.0.0.1"),
      {
        method: form === undefined ? "GET" : "POST",
        headers: {
          Cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; "),
          ...(form === undefined
            ? {}
            : { "Content-Type": "application/x-www-form-urlencoded", Origin: origin }),
        },
        rejectUnauthorized: false,
        agent: false,
      },
      (incoming) => {
        let text = "";
        incoming.setEncoding("utf8").on("data", (part) => {
          text += part;
        });
        incoming.on("end", () => {
          const cookies = incoming.headers["set-cookie"] ?? [];
          for (const cookie of cookies) {
            const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
            jar.set(name, value);
          }
          resolve({ status: incoming.statusCode ?? 0, text, location: incoming.headers.location, cookies });
        });
      },
    );
    outgoing.on("error", reject);
    outgoing.end(form === undefined ? undefined : new URLSearchParams(form).toString());
  });
}

/** The address with which the provider sends a person back, and the jars of both sites. */
async function throughProvider(service: RunningDevelopment, account: string) {
  const jar = new Map<string, string>();
  const there = new Map<string, string>();
  const away = await ask(jar, `${service.origin}/sign-in/oidc`, { return: "/drafts" });
  const [, target = ""] = /content="0;url=([^"]+)"/.exec(away.text) ?? [];
  let next = unescaped(target);
  for (let steps = 0; !next.startsWith(service.origin); steps += 1) {
    assert.ok(steps < 6, `The provider leads from page to page: ${next}`);
    const page = await ask(there, next);
    const answer = page.location === undefined ? await ask(there, next, { account }) : page;
    next = new URL(answer.location as string, next).href;
  }
  return { jar, callback: next, started: away };
}

test("sign-in sends state, nonce and PKCE; the callback works once per browser", async () => {
  const service = await startDevelopment({ folder, port: 0, seedData: false, env: {} });
  try {
    const { jar, callback, started } = await throughProvider(service, "ada");
    const [, sent = ""] = /content="0;url=([^"]+)"/.exec(started.text) ?? [];
    const asked = new URL(unescaped(sent)).searchParams;
    for (const name of ["state", "nonce", "code_challenge"])
      assert.ok((asked.get(name) ?? "").length > 30, name);
    assert.is(asked.get("code_challenge_method"), "S256");
    assert.match(started.cookies[0] as string, /; Path=\/; Secure; HttpOnly; SameSite=Lax/);
    assert.is((await ask(new Map(), callback)).status, 400, "another browser");
    const planted = "planted-by-somebody-else";
    jar.set("__Host-tapline-session", planted);
    const forged = new Map(jar);
    const wrong = new URL(callback);
    wrong.searchParams.set("state", "x".repeat(43));
    const second = await throughProvider(service, "ada");
    assert.is((await ask(second.jar, wrong.href)).status, 403, "another state");
    assert.is((await ask(second.jar, second.callback)).status, 400, "a failed attempt ends the sign-in");
    const back = await ask(jar, callback);
    assert.equal([back.status, back.location], [303, "/drafts"]);
    const session = back.cookies.find((cookie) => cookie.startsWith("__Host-tapline-session=")) as string;
    assert.match(session, /; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=/);
    assert.not.ok(session.includes(planted));
    assert.is((await ask(jar, `${service.origin}/drafts`)).status, 200);
    assert.is((await ask(forged, `${service.origin}/drafts`)).status, 303, "a planted session is none");
    assert.is((await ask(forged, callback)).status, 400, "a second time");
  } finally {
    await service.close();
  }
});

test("a test account stays the same across restarts", async () => {
  const ids: string[] = [];
  for (let start = 0; start < 2; start += 1) {
    const service = await startDevelopment({ folder, port: 0, seedData: false, env: {} });
    try {
      const { jar, callback } = await throughProvider(service, "ben");
      await ask(jar, callback);
      const { text } = await ask(jar, `${service.origin}/account`);
      ids.push(/Account id<\/dt><dd><code>([^<]+)/.exec(text)?.[1] as string);
    } finally {
      await service.close();
    }
  }
  assert.type(ids[0], "string");
  assert.is(ids[0], ids[1]);
});

test("the development certificate covers only this machine, for a month", async () => {
  const before = Date.now();
  const { cert } = await developmentCertificate();
  const after = Date.now();
  const read = new X509Certificate(cert);
  assert.is(
    read.subjectAltName,
    "DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1",
    "what clients look at: a browser asks for localhost, and may reach it by either address",
  );
  // Clients are given it as their CA, and it serves: TLS clients alone would do without the first.
  assert.is(read.ca, true);
  assert.equal(read.keyUsage, ["1.3.6.1.5.5.7.3.1"]);
  assert.ok(read.verify(read.publicKey));
  // Its times have whole seconds.
  const end = Date.parse(read.validTo);
  assert.ok(end > before + 2_592_000_000 - 1000 && end <= after + 2_592_000_000, read.validTo);
  assert.ok(Date.parse(read.validFrom) <= after, read.validFrom);
});

test.run();
