/** What a library for Windows needs and shows, as objdump reports it. */
export interface Tables {
  /** Names of the libraries that it imports from. */
  libraries: string[];
  /** Names that it exports. */
  names: string[];
}

/** Libraries of every Windows 10, and the program that loads the addon. */
const expected =
  /^(api-ms-win-.*|advapi32|bcrypt|crypt32|kernel32|msvcrt|node|ole32|shell32|ucrtbase|user32|ws2_32)\.(dll|exe)$/i;

/** How Node.js starts an addon. */
const entry = ["napi_register_module_v1", "node_api_module_get_api_version_v1"];

/** @param text of `objdump --private-headers` */
export function exportsAndImports(text: string): Tables {
  const libraries = [...text.matchAll(/^\s*DLL Name: (\S+)$/gm)].map((match) => match[1] as string);
  const from = text.indexOf("[Ordinal/Name Pointer] Table");
  const until = text.indexOf("\n\n", from);
  const table = from < 0 ? "" : text.slice(from, until < 0 ? undefined : until);
  const names = [...table.matchAll(/^\s*\[\s*\d+\](?: \+base\[\s*\d+\])?(?:\s+[0-9a-f]+)? (\S+)$/gm)];
  return { libraries, names: names.map((match) => match[1] as string) };
}

/** Libraries that users would have to install, and names that are shown although they are none of Node's or not shown. */
export function unexpected({ libraries, names }: Tables): string[] {
  const faults = libraries.filter((name) => !expected.test(name)).map((name) => `it needs ${name}`);
  if (!libraries.some((name) => /^node\.exe$/i.test(name))) faults.push("it imports nothing from node.exe");
  for (const name of names.filter((each) => !entry.includes(each))) faults.push(`it exports ${name}`);
  for (const name of entry.filter((each) => !names.includes(each))) faults.push(`it does not export ${name}`);
  return faults;
}
