/** A word as a POSIX shell reads it. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : shellText(text);
}

/** A text in single quotes, which a POSIX shell reads as one word. */
export function shellText(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
