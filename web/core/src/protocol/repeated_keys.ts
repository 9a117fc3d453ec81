/** Finds keys that an object in a JSON text has twice: parsing keeps only the last one, without an error. */

/**
 * Return whether an object in a JSON text has a key twice.
 *
 * @param read Value that the text was parsed to.
 */
export function repeatsKey(json: string, read: unknown): boolean {
  // Most texts are equal to the output of JSON.stringify, which never repeats a key. In the others, count the keys.
  return JSON.stringify(read) !== json && keysWritten(json) !== keysIn(read);
}

/** Return the number of keys in a valid JSON text: outside of strings, each key has one colon and nothing else has. */
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
