/** A SHA-256 in hexadecimal, as the services write it. */
export const sha256Pattern = "^[0-9a-f]{64}$";
