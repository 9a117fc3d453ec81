/**
 * The base of all questions. A question can be answered once, also while the agent continues.
 *
 * Theory of operation. An answer can be known from three places: this element (`sent`), from the click until the agent
 * side echoes the answer; the outbox of the client (`pending`), which survives a reload; and the props, after the echo.
 * The question is no longer open as soon as one of them has an answer. If the agent side refuses the answer while the
 * question is still open there, it can be answered again.
 */

import { questionState, type Component, type ErrorPayload, type Json, type Outgoing } from "@agent-rendering/core";
import { html, nothing, type PropertyDeclarations, type PropertyValues, type TemplateResult } from "lit";
import type { AnswerFile } from "../base/context.js";
import { CellController } from "../base/cell_controller.js";
import { ComponentElement } from "../base/component_element.js";
import { icon } from "../base/icons.js";
import "../base/late.js";
import { freshId, text } from "../base/values.js";
import { addStyles } from "../style/sheet.js";
import styles from "../style/questions.css?inline";
import { wrong } from "../base/wrong.js";

addStyles(styles);

/** Element of a question; subclasses draw its controls. */
export abstract class QuestionElement extends ComponentElement {
  static override properties: PropertyDeclarations = { sent: { state: true }, late: { state: true } };

  /** Answer that was given here and that the agent side has not echoed yet, with the id of its input. */
  declare protected sent: { readonly value: Json; readonly id: string | null } | null;
  /** Reason why the answer from here did not count: another screen was first, or the time was over. */
  declare protected late: ErrorPayload | null;
  protected readonly titleId = freshId("question");
  readonly #cells = new CellController(this);

  constructor() {
    super();
    this.sent = null;
    this.late = null;
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has("component") && this.component && questionState(this.component) !== "open") this.sent = null;
    const { client } = this.context;
    this.#cells.observe(...(client === null ? [] : [client.store.outgoing, client.store.status]));
    this.#keepRefusal();
  }

  /**
   * Remove a refused answer from the outbox if the question is closed, and keep the reason. The answer could never be
   * sent again, so it would stay in the outbox for good.
   */
  #keepRefusal(): void {
    const { component, pending } = this;
    if (component === null || pending?.phase !== "refused") return;
    const state = questionState(component);
    if (state === "open" || state === null) return;
    this.late = pending.error;
    this.context.client?.discard(pending.id);
  }

  /** Answer in the outbox of the client, from this element or from before a reload. */
  protected get pending(): Outgoing | null {
    const items = this.context.client?.store.outgoing.get() ?? [];
    return items.find(({ message }) => message.source_component === this.component?.id) ?? null;
  }

  /** Whether the question can be answered now: it is open, and no answer was sent, or the last one was refused. */
  override get open(): boolean {
    const { pending } = this;
    return super.open && (pending === null ? this.sent === null : pending.phase === "refused");
  }

  /** Value of the answer; `undefined` before there is one. */
  protected get given(): Json | undefined {
    const answer = this.component?.props.answer;
    return answer ?? this.sent?.value ?? undefined;
  }

  /** Answer the question, once. */
  protected reply(value: Json, files: readonly AnswerFile[] = []): void {
    this.#send("answer", value, (component) => this.context.answer(component, value, files));
  }

  /** Decline to answer, once. */
  #decline(): void {
    this.#send("decline", null, (component) => this.context.decline(component));
  }

  #send(name: "answer" | "decline", value: Json, send: (component: Component) => string | void): void {
    const { component, context, pending } = this;
    if (!this.open || component === null) return;
    // Only a refused answer can be pending here. It would stay in the outbox beside the new one.
    if (pending !== null) context.client?.discard(pending.id);
    // Set before sending: a listener that `send` calls must find the question answered, or it could answer again.
    this.sent = { value, id: null };
    const id = send(component) ?? null;
    this.sent = { value, id };
    context.announce(this.t(this.#isOffline() ? "answerQueued" : "answerSent"));
    this.dispatchEvent(
      new CustomEvent("arp-action", { bubbles: true, composed: true, detail: { component, name, payload: value } }),
    );
    void this.updateComplete.then(() => this.#keepFocus());
  }

  /** Move the focus to the question if the control that had it is gone; else the focus falls back to the page's top. */
  #keepFocus(): void {
    if (document.activeElement !== document.body && document.activeElement !== null) return;
    this.querySelector<HTMLElement>("section")?.focus({ preventScroll: true });
  }

  #isOffline(): boolean {
    const { client } = this.context;
    return client !== null && !client.connected;
  }

  /** Return the line below the controls: the state of the answer, or the reason why there is none. */
  protected standing(): TemplateResult | typeof nothing {
    const { t, component, pending } = this;
    const state = component && questionState(component);
    const late = this.late === null ? nothing : this.#refusal(this.late);
    if (state === "answered") return html`${note("check", t("answered"))}${late}`;
    if (state === "declined" || state === "expired" || state === "cancelled")
      return html`${note("cross", t(state))}${late}`;
    if (pending?.phase === "refused") return this.#refusal(pending.error);
    if (pending === null && this.sent === null) return nothing;
    const waits = pending?.phase === "sent" ? html`<arp-late>· ${t("notDelivered")}</arp-late>` : nothing;
    return note("check", t(this.#isOffline() ? "answerQueued" : "answerSent"), waits);
  }

  #refusal(error: ErrorPayload | null): TemplateResult {
    const { t } = this;
    return html`<p class="arp-note arp-error" role="alert">${icon("error")}<span>${error ? wrong(error, t, (text) => t("notSent", { error: text })) : nothing}</span></p>`;
  }

  /** Return the button that declines to answer, if the question allows it. */
  protected declining(): TemplateResult | typeof nothing {
    if (this.component?.props.can_decline !== true || !this.open) return nothing;
    return html`<button type="button" class="arp-button arp-soft arp-decline" @click=${() => this.#decline()}>${this.t("decline")}</button>`;
  }

  /** Return a question with its title, text, controls and the state of its answer. */
  protected frame(title: Json | undefined, message: Json | undefined, controls: unknown, kind: string): TemplateResult {
    const heading = text(title);
    const decline = this.declining();
    return html`<section
      class="arp-card arp-question" data-kind=${kind} data-state=${(this.component && questionState(this.component)) ?? "open"} role="group" tabindex="-1"
      aria-labelledby=${heading ? this.titleId : nothing} aria-label=${heading ? nothing : this.t("choice")}
    >
      ${heading ? html`<h3 class="arp-title" id=${this.titleId} dir="auto">${heading}</h3>` : nothing}
      ${text(message) ? html`<p class="arp-plain arp-question-text" dir="auto">${text(message)}</p>` : nothing}
      ${controls}${decline === nothing ? nothing : html`<div class="arp-actions">${decline}</div>`}${this.standing()}
    </section>`;
  }
}

function note(sign: "check" | "cross", words: string, more: unknown = nothing): TemplateResult {
  return html`<p class="arp-note arp-standing">${icon(sign)}<span>${words} ${more}</span></p>`;
}
