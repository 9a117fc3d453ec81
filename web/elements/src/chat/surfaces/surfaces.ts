/** The surfaces besides the conversation: a panel beside it, and popups; each is loaded with the first of them. */

import type { ArpClient, Storage } from "@agent-rendering/core";
import { html, nothing } from "lit";

import type { ArpContext } from "../../base/context.js";

/** Clients that had a popup: its element stays, since it gives back the focus. */
const popped = new WeakSet<ArpClient>();

/** @param settled Takes the focus when the reader has closed a surface. */
export function sidePanel(
  client: ArpClient | null,
  context: ArpContext,
  storage: Storage | null,
  settled: () => void,
): unknown {
  if (client === null || client.store.surfaceNames.get().length === 0) return nothing;
  void import("./side_panel.js").catch(() => undefined); // tried again with the next drawing
  return html`<arp-side-panel .client=${client} .context=${context} .storage=${storage} @arp-settled=${settled}></arp-side-panel>`;
}

/**
 * @param settled Takes the focus when a popup had it, and what had it before is gone.
 * @param reveal Brings into view what a popup is over.
 */
export function popups(
  client: ArpClient | null,
  context: ArpContext,
  settled: () => void,
  reveal: (event: CustomEvent<HTMLElement>) => void,
): unknown {
  if (client === null || (client.store.popupNames.get().length === 0 && !popped.has(client))) return nothing;
  popped.add(client);
  void import("./popups.js").catch(() => undefined);
  return html`<arp-popups .client=${client} .context=${context} @arp-settled=${settled} @arp-reveal=${reveal}></arp-popups>`;
}
