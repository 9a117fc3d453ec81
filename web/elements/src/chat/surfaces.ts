/** The surfaces besides the conversation: panels beside it, or below on a narrow screen. */

import type { ArpClient } from "@agent-rendering/core";
import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";

import { renderComponents } from "../components/render.js";
import type { ArpContext } from "../context.js";
import { visible } from "../values.js";
import { watch } from "./watch.js";

export function surfacePanels(client: ArpClient, context: ArpContext): unknown {
  const names = client.store.surfaceNames.get();
  if (names.length === 0) return nothing;
  return html`<div class="arp-surfaces">
    ${repeat(names, (name) => name, (name) => {
      const cell = client.store.surface(name);
      const drawn = { get: () => renderComponents(cell.get(), context), subscribe: cell.subscribe };
      return html`<section class="arp-surface" aria-label=${visible(name)}>
        <h2 dir="auto">${visible(name)}</h2>
        ${watch(drawn)}
      </section>`;
    })}
  </div>`;
}
