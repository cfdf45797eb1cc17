/** What one view hands to another: texts stand in no address. */
export const draft: {
  inspect: string | undefined;
  patch: { clean: string; corrupted: string } | undefined;
  /** A job's settings, to be repeated with changes. */
  repeat: Record<string, unknown> | undefined;
} = { inspect: undefined, patch: undefined, repeat: undefined };
