/**
 * Inputs that the agent side has not echoed yet, as bubbles after the turns. The timeline loads `message.ts` with the
 * first of them, and with it the element that shows pictures from the reader's disk.
 */

import type { ArpClient, Outgoing } from "@agent-rendering/core";
import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";

import type { ArpContext } from "../../base/context.js";
import "../../base/late.js";
import { wrong } from "../../base/wrong.js";
import { fileChip } from "../message/file_chip.js";
import { icon } from "../icons.js";
import { inputBubble } from "../message/input_bubble.js";
import { hasPreview } from "./picked.js";

/** Return whether an input shows as a bubble. Answers to questions show at the question instead. */
export function isBubble({ message }: Outgoing): boolean {
  const action = String(message.data.action ?? "");
  return message.source_component == null && !action.startsWith("arp.") && message.edits == null;
}

/** Return whether a refused input shows its error itself: at its bubble, or at the question that it answers. */
export function showsItsError(item: Outgoing): boolean {
  return isBubble(item) || item.message.source_component != null;
}

/** Return the bubbles. `back` puts the text and files of a discarded one back into the message box. */
export function outgoingBubbles(
  items: readonly Outgoing[],
  client: ArpClient,
  context: ArpContext,
  back: (text: string, files: readonly File[]) => void,
): unknown {
  return repeat(
    items.filter(isBubble),
    ({ id }) => id,
    (item) => bubble(item, client, context, back),
  );
}

function bubble(
  item: Outgoing,
  client: ArpClient,
  context: ArpContext,
  back: (text: string, files: readonly File[]) => void,
): TemplateResult {
  const { t } = context;
  const { id, message, files, phase, error } = item;
  const discard = () => {
    const given = client.discard(id); // `null` if the server has accepted it meanwhile: nothing to edit then
    if (given)
      back(
        String(given.message.data.text ?? ""),
        given.files.map(({ file }) => file),
      );
  };
  return html`<div class="arp-message arp-outgoing" data-input=${id} data-phase=${phase}>
    <article class="arp-said" aria-label=${t("saidBy", { name: t("you") })}>
      ${inputBubble(message, context)}
      ${
        files.length === 0
          ? nothing
          : html`<ul class="arp-files">${files.map(({ file }) => (hasPreview(file) ? html`<li class="arp-sent-picture"><arp-local-picture .file=${file}></arp-local-picture></li>` : html`<li>${fileChip(file, t)}</li>`))}</ul>`
      }
      ${state(item, context)}
      ${
        phase === "refused" && error
          ? html`<p class="arp-ending arp-bad" role="alert">${icon("alert")} <span>${wrong(error, t, (text) => t("notSent", { error: text }))}</span></p>`
          : nothing
      }
      ${
        phase === "refused" || phase === "waiting"
          ? html`<div class="arp-doing">
            ${phase === "refused" ? html`<button type="button" class="arp-button arp-soft" @click=${() => client.resend(id)}>${t("sendAgain")}</button>` : nothing}
            <button type="button" class="arp-button arp-quiet" @click=${discard}>${t("edit")}</button>
          </div>`
          : nothing
      }
    </article>
  </div>`;
}

function state({ phase, files, progress }: Outgoing, { t }: ArpContext): unknown {
  if (phase === "waiting") return html`<p class="arp-caption">${t("waitingToSend")}</p>`;
  if (phase !== "sent") return nothing;
  if (files.length === 0) return html`<arp-late class="arp-caption">${t("notDelivered")}</arp-late>`;
  const percent = t.number(progress, { style: "percent" });
  return html`<div class="arp-uploading">
    <progress max="1" .value=${progress} aria-label=${t("uploading", { percent })}></progress>
    <span class="arp-caption" aria-hidden="true">${t("uploading", { percent })}</span>
  </div>`;
}
