/** What lies between the conversation and the message box: the way to the newest, and what went wrong. */

import type { ErrorPayload } from "@agent-rendering/core";
import { html, nothing } from "lit";

import type { ArpContext } from "../../base/context.js";
import { wrong } from "../../base/wrong.js";
import { icon } from "../icons.js";

/** Something that belongs to no turn. */
export interface Notice {
  readonly id: number;
  readonly error: ErrorPayload;
}

/**
 * The way to the newest; `missed` turns came since the reader left it, `null` while it is in view.
 * `isAwaited`: what is there is a question of the agent.
 */
export function jumpButton(missed: number | null, isAwaited: boolean, { t }: ArpContext, jump: () => void): unknown {
  if (missed === null) return nothing;
  const news = isAwaited ? t("yourTurn") : missed === 0 ? "" : t("newMessages", { count: missed });
  const name = news === "" ? t("jumpToLatest") : `${t("jumpToLatest")}, ${news}`;
  return html`<button type="button" class="arp-jump" aria-label=${name} @click=${jump}>
    ${icon("down")}<span>${news || t("jumpToLatest")}</span>
  </button>`;
}

/** The notices, each until it is closed. */
export function noticeList(notices: readonly Notice[], { t }: ArpContext, close: (id: number) => void): unknown {
  if (notices.length === 0) return nothing;
  return html`<ul class="arp-notices" aria-label=${t("error")}>
    ${notices.map(
      ({ id, error }) => html`<li class="arp-notice">
        ${icon("alert")}<span dir="auto">${wrong(error, t)}</span>
        <button type="button" class="arp-icon-button" aria-label=${t("close")} @click=${() => close(id)}>${icon("close")}</button>
      </li>`,
    )}
  </ul>`;
}
