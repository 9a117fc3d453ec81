/** The side panel and the popups. The code of each is loaded with its first surface. */

import type { ArpClient, Storage } from "@agent-rendering/core";
import { html, nothing } from "lit";

import type { ArpContext } from "../../base/context.js";

/** Clients that have had a popup. The element stays after the last popup, because it then returns the focus. */
const popped = new WeakSet<ArpClient>();

/**
 * Return the side panel to draw; nothing if there are no surfaces for it.
 *
 * @param settled Called when the reader has closed a surface, to move the focus.
 */
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
 * Return the popups to draw; nothing before the first one.
 *
 * @param settled Called to move the focus, if a closed popup had it and the element that had it before is gone.
 * @param reveal Called with the element that a popup lies over, to bring it into view.
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
