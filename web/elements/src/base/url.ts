/** Which addresses are followed, and which pictures are fetched without asking. */

import type { ArpContext } from "./context.js";

/** A file that a session holds; nothing after its name. */
const FILE = /^[^?#]*\/_api\/blobs\/s[\w-]+\/\w{64}\/(?:n[\w-]+\/)?[\w.-]+$/;

/** Names of this machine: with one port they are one server. */
const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1])$/;

/**
 * A link that may be followed; `null` for any other, such as `javascript:`.
 *
 * Of the agent's server files alone are linked: an address of its page says who the reader is and which chat
 * shows, and that is not for an agent to say.
 *
 * @param context Where it is drawn; without one, or without a client, the server is the page's own.
 */
export function linkTarget(address: string, context: Pick<ArpContext, "client"> | null = null): URL | null {
  const url = parsed(address);
  if (url === null || !/^(?:https?|mailto):$/.test(url.protocol)) return null;
  const server = parsed(context?.client?.address.base ?? "");
  if (server === null || !isOf(server, url)) return url;
  return FILE.test(url.href) ? url : null;
}

function isOf(server: URL, { host, hostname, port }: URL): boolean {
  return host === server.host || (port === server.port && LOOPBACK.test(hostname) && LOOPBACK.test(server.hostname));
}

/** Where a picture comes from: `here` may be loaded at once, `remote` wants consent, else it is refused. */
export function imageSource(address: string): { kind: "here" | "remote"; url: string; host: string } | null {
  if (/^data:image\/(?:png|jpe?g|gif|webp);base64,[a-z0-9+/=\s]*$/i.test(address))
    return { kind: "here", url: address, host: "" };
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
