/** What to announce at the end of a turn, and what to do when a connection is open. */

import type { ArpClient, TurnState } from "@agent-rendering/core";

import type { Translate } from "../../base/context.js";

/** Return a line about how a turn ended; after a failure, it also says whether the queue is paused. */
export function endLine({ status }: TurnState, { store }: ArpClient, t: Translate): string {
  if (status === "completed") return t("answerComplete");
  if (status === "cancelled") return t("stopped");
  const isPaused = store.turnIds.get().some((id) => store.turn(id).get()?.paused);
  return isPaused ? `${t("failed")}. ${t("linePaused")}` : t("failed");
}

/** Get the cookie for files, on a page of the same server. Pictures and links of the page cannot send a token. */
export async function openFiles({ address, sessions }: ArpClient): Promise<void> {
  if (new URL(address.base).origin === location.origin) await sessions.openFiles().catch(() => undefined);
}
