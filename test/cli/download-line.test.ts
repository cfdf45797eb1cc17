import { test } from "uvu";
import * as assert from "uvu/assert";
import { downloadLine } from "../../src/cli/download-line.js";

test("a resumed download: what was here counts as done, and not as speed; where no terminal is, it is told, too", () => {
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

test.run();
