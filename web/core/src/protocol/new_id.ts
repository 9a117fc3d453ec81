/** Ids that a renderer chooses: of inputs, sessions and pings. */

/** A fresh id of 128 random bits; works on plain http too. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => (byte + 0x100).toString(16).slice(1)).join("");
}
