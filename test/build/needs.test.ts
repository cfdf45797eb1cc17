import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { beyond, foldersNamedIn, needsOf, parseNeeds } from "../../scripts/build/needs.js";

// As binutils 2.40 prints it, shortened.
const output = `
Dynamic section at offset 0xa5b0 contains 31 entries:
  Tag        Type                         Name/Value
 0x0000000000000001 (NEEDED)             Shared library: [libstdc++.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x000000000000000e (SONAME)             Library soname: [tapline.node]
 0x000000000000001d (RUNPATH)            Library runpath: [/home/somebody/cuda/stubs:/home/somebody/cuda/lib]

Version definition section '.gnu.version_d' contains 1 entry:
  000000: Rev: 1  Flags: BASE  Index: 1  Cnt: 1  Name: GLIBC_2.99

Version needs section '.gnu.version_r' contains 2 entries:
 Addr: 0x0000000000000a30  Offset: 0x000a30  Link: 8 (.dynstr)
  000000: Version: 1  File: libc.so.6  Cnt: 3
  0x0010:   Name: GLIBC_2.28  Flags: none  Version: 11
  0x0020:   Name: GLIBC_2.2.5  Flags: none  Version: 3
  0x0030:   Name: GLIBC_2.29  Flags: none  Version: 9
  0x0040: Version: 1  File: libstdc++.so.6  Cnt: 2
  0x0050:   Name: GLIBCXX_3.4.30  Flags: none  Version: 5
  0x0060:   Name: GLIBC_2.2.5  Flags: none  Version: 3
`;

test("needed libraries, symbol versions and searched folders are read", () => {
  assert.equal(parseNeeds(output), {
    libraries: ["libstdc++.so.6", "libc.so.6"],
    versions: ["GLIBC_2.28", "GLIBC_2.2.5", "GLIBC_2.29", "GLIBCXX_3.4.30"],
    folders: ["/home/somebody/cuda/stubs", "/home/somebody/cuda/lib"],
  });
});

test("foreign libraries and newer versions are beyond an old glibc", () => {
  const needs = parseNeeds(output);
  assert.equal(beyond(needs, "2.28"), ["libstdc++.so.6", "GLIBC_2.29", "GLIBCXX_3.4.30"]);
  assert.equal(beyond(needs, "2.29"), ["libstdc++.so.6", "GLIBCXX_3.4.30"]);
  const own = ["libc.so.6", "libm.so.6", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"];
  assert.equal(beyond({ libraries: own, versions: ["GLIBC_2.2.5", "GLIBC_2.28"] }, "2.28"), []);
  assert.equal(beyond({ libraries: ["libgomp.so.1"], versions: ["GLIBC_PRIVATE"] }, "2.28"), [
    "libgomp.so.1",
    "GLIBC_PRIVATE",
  ]);
});

test("folders are found between the bytes of a binary file", () => {
  const folder = mkdtempSync(join(os.tmpdir(), "tapline-needs-"));
  try {
    const path = join(folder, "addon.node");
    const text = Buffer.from("/home/somebody/clone/native/base/error.h");
    writeFileSync(path, Buffer.concat([Buffer.from([0xff, 0, 0xc3]), text, Buffer.from([0, 0x80])]));
    assert.equal(foldersNamedIn(path, ["/home/somebody/clone", "/home/somebody/cache"]), [
      "/home/somebody/clone",
    ]);
    assert.equal(foldersNamedIn(path, ["/home/somebody/clones"]), []);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

if (process.platform === "linux") {
  test("the needs of a program are those that its loader reads", () => {
    const { libraries, versions } = needsOf(process.execPath);
    assert.ok(libraries.includes("libc.so.6"), libraries.join());
    assert.ok(versions.includes("GLIBC_2.17"), versions.join());
    assert.throws(
      () => needsOf("/dev/null"),
      /^BuildError: readelf cannot read \/dev\/null: |readelf cannot read/,
    );
  });
}

test.run();
