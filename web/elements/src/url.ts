/** Which addresses are followed, and which pictures are fetched without asking. */

/** A link that may be followed; `null` for any other, such as `javascript:`. */
export function linkTarget(address: string): URL | null {
  const url = parsed(address);
  return url !== null && /^(?:https?|mailto):$/.test(url.protocol) ? url : null;
}

/** Where a picture comes from: `here` may be loaded at once, `remote` wants consent, else it is refused. */
export function imageSource(address: string): { kind: "here" | "remote"; url: string; host: string } | null {
  if (/^data:image\/(?:png|jpe?g|gif|webp);base64,[a-z0-9+/=\s]*$/i.test(address)) return { kind: "here", url: address, host: "" };
  const url = parsed(address);
  if (url === null || !/^https?:$/.test(url.protocol)) return null;
  const isOwn = url.origin === originOf(baseUrl());
  return { kind: isOwn ? "here" : "remote", url: url.href, host: url.host };
}

/** Whether a link leads away from this page's server. */
export function leadsAway(url: URL): boolean {
  return url.protocol !== "mailto:" && url.origin !== originOf(baseUrl());
}

function parsed(address: string): URL | null {
  try {
    return new URL(address.trim(), baseUrl());
  } catch {
    return null;
  }
}

function baseUrl(): string {
  return typeof document === "undefined" ? "http://localhost/" : document.baseURI;
}

function originOf(url: string): string {
  try {
    return new URL(url).origin;
  } catch {
    return "null";
  }
}
