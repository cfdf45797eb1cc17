/** The first field in which the settings of an earlier run differ from these, in words. */
export function differenceOf(there: unknown, here: Readonly<Record<string, unknown>>): string | undefined {
  const known = Object(there) as Readonly<Record<string, unknown>>;
  for (const name of new Set([...Object.keys(here), ...Object.keys(known)])) {
    const [one, other] = [known, here].map((each) => JSON.stringify(each[name])) as [string, string];
    if (one === other) continue;
    return one === undefined || other === undefined || one.length + other.length > 200
      ? `the two differ in ${name}`
      : `${name} is ${one} there and ${other} here`;
  }
  return undefined;
}
