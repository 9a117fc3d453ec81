/** The surfaces besides the conversation: a panel beside it, loaded with the first of them. */

import type { ArpClient, Storage } from "@agent-rendering/core";
import { html, nothing } from "lit";

import type { ArpContext } from "../context.js";

export function sidePanel(client: ArpClient | null, context: ArpContext, storage: Storage | null): unknown {
  if (client === null || client.store.surfaceNames.get().length === 0) return nothing;
  void import("./side_panel.js");
  return html`<arp-side-panel .client=${client} .context=${context} .storage=${storage}></arp-side-panel>`;
}
