/** Keys that an object in a JSON text has twice: parsing keeps the last one only, and nothing says so. */

/** Returns whether an object in a JSON text has a key twice, given what was read of it. */
export function repeatsKey(json: string, read: unknown): boolean {
  // Most texts are what JSON.stringify writes, which has no key twice; the others are counted.
  return JSON.stringify(read) !== json && keysWritten(json) !== keysIn(read);
}

/** How many keys a valid JSON text has: each has a colon, and so have only they outside of texts. */
function keysWritten(json: string): number {
  return (
    json
      .replace(/\\./gs, "")
      .replace(/"[^"]*"/g, "")
      .split(":").length - 1
  );
}

function keysIn(value: unknown): number {
  let count = 0;
  if (typeof value !== "object" || value === null) return count;
  for (const item of Object.values(value)) count += keysIn(item) + (Array.isArray(value) ? 0 : 1);
  return count;
}
