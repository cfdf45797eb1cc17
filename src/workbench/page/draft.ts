/** What one view hands to another: texts stand in no address. */
export const draft: {
  inspect: string | undefined;
  patch: { clean: string; corrupted: string } | undefined;
} = { inspect: undefined, patch: undefined };
