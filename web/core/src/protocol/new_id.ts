/** Ids that a renderer chooses, for inputs, sessions and pings. */

/** Return a new id of 128 random bits. Works on plain http too, unlike `crypto.randomUUID`. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => (byte + 0x100).toString(16).slice(1)).join("");
}
