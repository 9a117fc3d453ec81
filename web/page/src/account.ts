/** The account of the user, and where to sign in and out, as the server reports it. */

import type { SignIn } from "@agent-rendering/elements/chat";

/** Response of `GET /_api/user`. */
export interface Account {
  readonly user: { readonly name: string; readonly display_name: string } | null;
  readonly login_url: string | null;
  readonly logout_url: string | null;
  readonly logout_method: "GET" | "POST";
  readonly sign_in_text: string | null;
}

/** Request the account from the server; return `null` if the request fails. */
export async function readAccount(token: string | null): Promise<Account | null> {
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  try {
    const answer = await fetch(new URL("_api/user", document.baseURI), { headers });
    return answer.ok ? ((await answer.json()) as Account) : null;
  } catch {
    return null; // the banner reports the problem with the connection
  }
}

/** Return how to sign in and come back to this page, or `null` if the server only accepts a token. */
export function signInOf({ login_url, sign_in_text }: Account): SignIn | null {
  if (login_url === null && sign_in_text === null) return null;
  const here = encodeURIComponent(location.pathname + location.search);
  return { text: sign_in_text, href: login_url?.replace("{next}", here) ?? null };
}

/** Sign out, and open the page that the server names. */
export async function signOut({ logout_url, logout_method }: Account): Promise<void> {
  if (logout_url === null) return;
  const here = encodeURIComponent(location.pathname);
  let target = logout_url.replace("{next}", here);
  if (logout_method === "POST") {
    const answer = await fetch(target, { method: "POST" });
    target = ((await answer.json()) as { location?: string }).location ?? location.pathname;
  }
  location.assign(target);
}
