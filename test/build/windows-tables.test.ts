/** What `npm run verify:windows` reads from objdump. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { exportsAndImports, unexpected } from "../verify/windows/tables.js";

const objdump = `
The Import Tables (interpreted .idata section contents)
 vma:            Hint    Time      Forward  DLL       First
                 Table   Stamp     Chain    Name      Thunk
 00063000\t00063050 00000000 00000000 00063a44 000632a8

\tDLL Name: KERNEL32.dll
\tvma:  Hint/Ord Member-Name Bound-To
\t63500\t  283  DeleteCriticalSection

\tDLL Name: NODE.EXE
\tvma:  Hint/Ord Member-Name Bound-To
\t63600\t    1  napi_create_object

[Ordinal/Name Pointer] Table
\t[   0] napi_register_module_v1
\t[   1] node_api_module_get_api_version_v1

The Function Table (interpreted .pdata section contents)
`;

test("libraries and exported names are read", () => {
  const tables = exportsAndImports(objdump);
  assert.equal(tables, {
    libraries: ["KERNEL32.dll", "NODE.EXE"],
    names: ["napi_register_module_v1", "node_api_module_get_api_version_v1"],
  });
  assert.equal(unexpected(tables), []);
});

test("other libraries, missing entry points and further names are faults", () => {
  const tables = {
    libraries: ["libstdc++-6.dll", "KERNEL32.dll"],
    names: ["napi_register_module_v1", "ggml_init"],
  };
  assert.equal(unexpected(tables), [
    "it needs libstdc++-6.dll",
    "it imports nothing from node.exe",
    "it exports ggml_init",
    "it does not export node_api_module_get_api_version_v1",
  ]);
});

test.run();
