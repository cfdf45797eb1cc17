import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { leadingTo, opener, openPrivately } from "../../src/cli/open-browser.js";
import { Sessions } from "../../src/workbench/sessions.js";
import { until } from "../support/until.js";

test("a link opens one session, once, within ten minutes", () => {
  let now = 1_000_000;
  const sessions = new Sessions(() => now);
  const [first, second] = [sessions.link(), sessions.link()];
  assert.match(first, /^[A-Za-z0-9_-]{43}$/);
  now += 10 * 60 * 1000 - 1;
  assert.ok(sessions.redeem(first));
  assert.is(sessions.redeem(first), undefined, "the second time");
  now += 1;
  assert.is(sessions.redeem(second), undefined, "after ten minutes");
  assert.is(sessions.redeem("A".repeat(43)), undefined);
});

test("a session is its cookie and its secret together; ending all ends each", () => {
  const sessions = new Sessions();
  const [one, other] = [sessions.redeem(sessions.link())!, sessions.redeem(sessions.link())!];
  assert.ok(sessions.holds(one.cookie, one.secret));
  assert.ok(sessions.holds(other.cookie, other.secret), "two browsers at once");
  for (const [cookie, secret] of [
    [one.cookie, other.secret],
    [one.secret, one.cookie],
    [one.cookie, ""],
    ["", one.secret],
    ["", ""],
  ] as const) {
    assert.not(sessions.holds(cookie, secret));
  }
  sessions.endAll();
  assert.not(sessions.holds(one.cookie, one.secret));
});

test("a page that asks for links again and again keeps the newest sixteen sessions", () => {
  const sessions = new Sessions();
  const made = Array.from({ length: 18 }, () => sessions.redeem(sessions.link())!);
  assert.equal(
    made.map(({ cookie, secret }) => sessions.holds(cookie, secret)),
    [false, false, ...Array(16).fill(true)],
  );
});

test("a browser is opened only where one of this machine would be seen", () => {
  const on = (platform: NodeJS.Platform, environment: NodeJS.ProcessEnv) => opener(environment, platform);
  assert.equal(on("linux", { DISPLAY: ":0" }), ["xdg-open"]);
  assert.equal(on("linux", { WAYLAND_DISPLAY: "wayland-0" }), ["xdg-open"]);
  assert.equal(on("darwin", {}), ["open"]);
  assert.is(on("linux", {}), undefined);
  assert.is(on("linux", { DISPLAY: "" }), undefined);
  assert.is(on("linux", { DISPLAY: ":0", SSH_CONNECTION: "10.0.0.1 1 10.0.0.2 22" }), undefined);
  assert.is(on("linux", { DISPLAY: ":0", WSL_DISTRO_NAME: "Debian" }), undefined);
  assert.match(leadingTo("http://127.0.0.1:1/#abc"), /content="0;url=http:\/\/127\.0\.0\.1:1\/#abc"/);
});

test("the browser gets a private file instead of the link; opening deletes it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tapline-browser-"));
  const told = join(folder, "told");
  // In the browser's place: writes down what every user of the machine can see of it.
  writeFileSync(
    join(folder, "xdg-open"),
    `#!/bin/sh\nprintf '%s\\n' "$0 $*" > ${told}.part\nmv ${told}.part ${told}\n`,
    {
      mode: 0o700,
    },
  );
  const { PATH } = process.env;
  process.env.PATH = `${folder}:${PATH}`;
  const link = `http://127.0.0.1:8972/#${"a".repeat(43)}`;
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const remove = await openPrivately(link, opened, { DISPLAY: ":0" }, "linux");
  try {
    const seen = await until(() => existsSync(told) && readFileSync(told, "utf8"));
    const [, file] = seen.trim().split(" ");
    assert.not.match(seen, /aaaa|127\.0\.0\.1/);
    assert.is(statSync(file as string).mode & 0o777, 0o600);
    assert.is(statSync(dirname(file as string)).mode & 0o777, 0o700);
    assert.ok(readFileSync(file as string, "utf8").includes(link));
    open();
    await until(() => !existsSync(file as string));
  } finally {
    process.env.PATH = PATH;
    await remove();
    rmSync(folder, { recursive: true, force: true });
  }
});

test.run();
