/** The jump button and the notices, between the conversation and the message box. */

import type { ArpClient, ErrorPayload } from "@agent-rendering/core";
import { html, nothing } from "lit";

import type { ArpContext } from "../../base/context.js";
import { emit } from "../../base/element.js";
import { sentence, wrong } from "../../base/wrong.js";
import { showsItsError } from "../composer/outgoing.js";
import { icon } from "../icons.js";
import type { Announcer } from "./announcer.js";
import { UNAUTHENTICATED } from "./banner.js";

/**
 * Return the button that scrolls to the newest message.
 *
 * @param missed Number of turns since the reader scrolled up; `null`, without a button, while the newest is in view.
 * @param isAwaited Whether the agent waits for an answer there.
 */
export function jumpButton(missed: number | null, isAwaited: boolean, { t }: ArpContext, jump: () => void): unknown {
  if (missed === null) return nothing;
  const news = isAwaited ? t("yourTurn") : missed === 0 ? "" : t("newMessages", { count: missed });
  const name = news === "" ? t("jumpToLatest") : `${t("jumpToLatest")}, ${news}`;
  return html`<button type="button" class="arp-jump" aria-label=${name} @click=${jump}>
    ${icon("down")}<span>${news || t("jumpToLatest")}</span>
  </button>`;
}

/** Number of notices that show at once; a further one replaces the oldest. */
const MOST_NOTICES = 3;
/** Code of an error about a component that does not exist. */
const INVALID_OBJECT = 1;

/** The chat around the notices. */
interface NoticesHost extends HTMLElement {
  requestUpdate(): void;
}

/** Errors that belong to no turn, each until the reader closes it. */
export class Notices {
  #list: readonly ErrorPayload[] = [];
  /** Errors of the store that were reported before. */
  #seen: readonly ErrorPayload[] = [];
  readonly #host: NoticesHost;
  readonly #announcer: Announcer;

  constructor(host: NoticesHost, announcer: Announcer) {
    this.#host = host;
    this.#announcer = announcer;
  }

  /** Show an error and announce it, once if it answers an input. */
  add(error: ErrorPayload): void {
    // A refusal of an input is reported twice: by the store, and to the code that sent the input.
    if (error.id != null && this.#list.some(({ id }) => id === error.id)) return;
    this.#show([...this.#list.slice(1 - MOST_NOTICES), error]);
    this.#announcer.say(this.#announcer.t.problem(error.code) ?? sentence(error.error), true);
  }

  /** Report the errors of a client that are new, and show those that nothing else shows. */
  update(client: ArpClient): void {
    const { errors, outgoing } = client.store;
    const list = errors.get();
    for (const error of list.filter((error) => !this.#seen.includes(error))) {
      const item = outgoing.get().find(({ id }) => id === error.id);
      const isInBanner = error.detail === "workflow" || error.code === UNAUTHENTICATED;
      const isGone = error.code === INVALID_OBJECT; // the question is gone, so it cannot show the error itself
      if (!isInBanner && (item === undefined || isGone || !showsItsError(item))) this.add(error);
      // Nothing shows this answer any more. Kept in the outbox, it would be there for ever.
      if (isGone && item?.message.source_component != null) client.discard(item.id);
      emit(this.#host, "arp-error", { error: error.error, payload: error, turnId: null });
    }
    this.#seen = list;
  }

  /** Remove all notices before another client is used. */
  clear(): void {
    this.#seen = [];
    this.#show([]);
  }

  /** Return the list to draw. */
  draw({ t }: ArpContext): unknown {
    if (this.#list.length === 0) return nothing;
    return html`<ul class="arp-notices" aria-label=${t("error")}>
      ${this.#list.map(
        (error) => html`<li class="arp-notice">
        ${icon("alert")}<span dir="auto">${wrong(error, t)}</span>
        <button type="button" class="arp-icon-button" aria-label=${t("close")} @click=${() => this.#close(error)}>${icon("close")}</button>
      </li>`,
      )}
    </ul>`;
  }

  #close(closed: ErrorPayload): void {
    this.#show(this.#list.filter((error) => error !== closed));
    this.#host.focus();
  }

  #show(list: readonly ErrorPayload[]): void {
    this.#list = list;
    this.#host.requestUpdate();
  }
}
