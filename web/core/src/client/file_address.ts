/** Address of a session's file on its server. `blob_path` of the server builds the same address. */

const UNSAFE = /[^A-Za-z0-9._-]+/g;

/** Return the address of a file, below that of the server. The added parts contain only letters, digits and `._-`. */
export function fileAddress(
  base: string,
  sessionId: string,
  { sha256, name }: { readonly sha256: string; readonly name: string },
): string {
  const bytes = Array.from(new TextEncoder().encode(sessionId), (byte) => String.fromCharCode(byte)).join("");
  const session = btoa(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const at = name.lastIndexOf(".");
  const hasEnding = /[^.]/.test(name.slice(0, Math.max(at, 0))); // a name such as `.hidden` has no ending
  const stem = plain(hasEnding ? name.slice(0, at) : name) || "file";
  const ending = hasEnding ? name.slice(at + 1) : "";
  const shown = ending === "" ? stem : `${stem}.${plain(ending)}`;
  return `${base.replace(/\/$/, "")}/_api/blobs/s${session}/${sha256}/${shown}`;
}

/** Return a text with only letters, digits and `._-`, and none of `._-` at its ends; at most 100 characters. */
function plain(text: string): string {
  return text
    .replace(UNSAFE, "-")
    .replace(/^[._-]+|[._-]+$/g, "")
    .slice(0, 100);
}
