/** Licenses under which a study may be published. */
export const licenses = ["CC-BY-4.0", "CC0-1.0"] as const;
