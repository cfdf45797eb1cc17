import { test } from "uvu";
import * as assert from "uvu/assert";
import { downloading, downloadLine } from "../../src/cli/download-line.js";
import { capturing } from "./in-process.js";

test("a resumed download counts existing bytes as progress, not as speed", () => {
  let now = 1000;
  const shown: string[] = [];
  const logged: string[] = [];
  const tell = downloadLine(
    { show: (text) => shown.push(text), log: (_key, text) => logged.push(text) },
    () => now,
  );
  const at = (ms: number, done: number, received: number) => {
    now = ms;
    tell({ file: "m.gguf", done, total: 1_000_000_000, received });
    return shown.at(-1) as string;
  };
  // 900 MB were here and are read again for their checksum, as fast as the disk is.
  assert.is(/\/s|left/.test(at(1000, 400_000_000, 0)), false);
  assert.is(/\/s|left/.test(at(2000, 900_000_000, 0)), false);
  at(3000, 901_000_000, 1_000_000);
  const last = at(5000, 921_000_000, 21_000_000); // 20 MB in 2 s, 79 MB to go
  assert.ok(last.endsWith("92 %  921 MB of 1.0 GB, 10 MB/s, 7.9 s left  m.gguf"), last);
  assert.is(logged.at(-1), "downloading 92 %  921 MB of 1.0 GB, 10 MB/s, 7.9 s left  m.gguf");
});

test("the bar has 24 steps; a speed appears after half a second", () => {
  let now = 0;
  const shown: string[] = [];
  const logged: [key: string, text: string][] = [];
  const tell = downloadLine(
    { show: (text) => shown.push(text), log: (key, text) => logged.push([key, text]) },
    () => now,
  );
  const at = (ms: number, done: number, received: number, total = 24_000) => {
    now = ms;
    const before = shown.length;
    tell({ file: "f", done, total, received });
    return shown.slice(before)[0];
  };
  const bar = (full: number) => "█".repeat(full) + "░".repeat(24 - full);
  assert.is(at(1000, 0, 0), `${bar(0)} 0 %  0 B of 24 kB  f`);
  assert.is(at(1050, 500, 500), undefined, "not more often than ten times a second");
  assert.is(at(1100, 1000, 1000), `${bar(1)} 4 %  1.0 kB of 24 kB  f`);
  // The first bytes came at 1050 ms; 6000 since, in 0.6 s.
  assert.is(at(1550, 1500, 1500), `${bar(2)} 6 %  1.5 kB of 24 kB  f`);
  assert.is(at(1650, 6500, 6500), `${bar(7)} 27 %  6.5 kB of 24 kB, 10 kB/s, 1.8 s left  f`);
  // Its end is told however soon it comes, without a time that is left.
  assert.is(at(1660, 24_000, 24_000), `${bar(24)} 100 %  24 kB of 24 kB, 39 kB/s  f`);
  assert.equal(logged[0], ["f false", "downloading 0 %  0 B of 24 kB  f"]);
  assert.is(logged.at(-1)?.[0], "f true");
  assert.match(at(2000, 0, 0, 0)!, `${bar(24)} 100 %  0 B of 0 B`);
});

test("a signal ends a download in order; any other end is the download's own", async () => {
  const never = new Promise<NodeJS.Signals>(() => {});
  assert.is(await downloading(never, "pull", async () => "done"), "done");
  const fault = new Error("No room.");
  assert.is(await downloading(never, "pull", () => Promise.reject(fault)).catch((error) => error), fault);
  let reason: unknown;
  const stopped = await capturing(async () => {
    const answer = await downloading(
      Promise.resolve("SIGINT" as const),
      "pull",
      ({ signal }) =>
        new Promise((_, reject) =>
          signal.addEventListener("abort", () => {
            reason = signal.reason;
            reject(new Error("aborted"));
          }),
        ),
    );
    assert.is(answer, undefined);
  });
  assert.is(reason, "SIGINT");
  assert.equal(stopped, { code: 1, stdout: "", stderr: "tapline: Stopped. Run pull again to resume.\n" });
});

test.run();
