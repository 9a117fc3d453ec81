/** Who the reader is, and where they sign in and out: what the server says of it. */

import type { SignIn } from "@agent-rendering/elements/chat";

/** As `GET /_api/user` gives it. */
export interface Account {
  readonly user: { readonly name: string; readonly display_name: string } | null;
  readonly login_url: string | null;
  readonly logout_url: string | null;
  readonly logout_method: "GET" | "POST";
  readonly sign_in_text: string | null;
}

/** Asks the server; `null` if it does not say. */
export async function readAccount(token: string | null): Promise<Account | null> {
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  try {
    const answer = await fetch(new URL("_api/user", document.baseURI), { headers });
    return answer.ok ? ((await answer.json()) as Account) : null;
  } catch {
    return null; // the banner says what is wrong with the connection
  }
}

/** How to sign in at this server and come back to this very page; `null` where the token is all there is. */
export function signInOf({ login_url, sign_in_text }: Account): SignIn | null {
  if (login_url === null && sign_in_text === null) return null;
  const here = encodeURIComponent(location.pathname + location.search);
  return { text: sign_in_text, href: login_url?.replace("{next}", here) ?? null };
}

/** Signs out, and goes where the server says. */
export async function signOut({ logout_url, logout_method }: Account): Promise<void> {
  if (logout_url === null) return;
  const here = encodeURIComponent(location.pathname);
  let place = logout_url.replace("{next}", here);
  if (logout_method === "POST") {
    const answer = await fetch(place, { method: "POST" });
    place = ((await answer.json()) as { location?: string }).location ?? location.pathname;
  }
  location.assign(place);
}
