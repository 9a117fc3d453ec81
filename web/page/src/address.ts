/** The page's own address: which session it shows, and the token that was handed over in it. */

const TOKEN_KEY = "arp.token";

/** The session that an address names; `null` if it names none. */
export function sessionOf(href: string): string | null {
  return new URL(href).searchParams.get("session") || null;
}

/** An address with another session, and without what must not be kept in it. */
export function withSession(href: string, sessionId: string | null): string {
  const url = new URL(href);
  if (sessionId === null) url.searchParams.delete("session");
  else url.searchParams.set("session", sessionId);
  if (tokenOf(href) !== null) url.hash = "";
  return url.href;
}

/** The token behind `#token=`; it is kept for this tab, so that the address need not show it. */
export function tokenOf(href: string): string | null {
  return new URLSearchParams(new URL(href).hash.slice(1)).get("token");
}

/** The token to use: the given one, which is kept, or the one that was kept. */
export function keptToken(given: string | null, storage: Storage | null): string | null {
  try {
    if (given !== null) storage?.setItem(TOKEN_KEY, given);
    return given ?? storage?.getItem(TOKEN_KEY) ?? null;
  } catch {
    return given;
  }
}
