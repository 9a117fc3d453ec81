/**
 * `<arp-message>`: one turn, in the order in which it happened.
 *
 * Theory of operation. A turn is an immutable object; the message redraws when it gets another one. Sections and blocks
 * are keyed, so their elements keep the focus and stay open or closed. Most changes of a running turn only append to
 * its last text. `shouldUpdate` detects these and gives the text directly to the prose element (`#growing`), without
 * drawing the rest of the turn.
 */

import type { ArpClient, TurnState, Wire } from "@agent-rendering/core";
import { AUTHOR, SOURCES } from "@agent-rendering/core/chat";
import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { live } from "lit/directives/live.js";
import { repeat } from "lit/directives/repeat.js";

import { Citations } from "../../base/citations.js";
import { loadComponents, renderComponent } from "../../components/render.js";
import { createContext, type ArpContext, type Translate } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import type { ArpProse } from "../../markdown/prose.js";
import "../../markdown/prose.js";
import "../../base/picture.js";
import { warmProse } from "../../markdown/warm.js";
import { drawAll } from "../../base/draw_all.js";
import { Activity } from "./activity.js";
import { authorLine } from "./author.js";
import { permissionNote } from "./permission_note.js";
import { errorCard } from "./error_card.js";
import { icon } from "../icons.js";
import { inputBubble } from "./input_bubble.js";
import "./local_picture.js";
import "./message_styles.js";
import type { FeedbackSource } from "./rating.js";
import { isGrown, sectionsOf, type Block, type Section } from "@agent-rendering/core/timeline";
import { adoptChatStyles } from "../styles.js";
import { timeOf } from "../timeline/times.js";
import { visible } from "../../base/values.js";
import { picture } from "../status/welcome.js";

const BARE = createContext();
/** Whether no answer has begun on this page. The first one warms up the drawing of prose in its message. */
let isCold = true;

/** Actions that a message offers. An absent action is not offered. */
export interface MessageActions {
  /** Send the same input again, for another version of the answer. */
  regenerate?(turn: TurnState): void;
  /** Replace the input by another text. */
  edit?(turn: TurnState, text: string): void;
  /** Remove a turn from the queue. */
  leave?(turn: TurnState): void;
  /** Move a turn to the front of the queue. */
  promote?(turn: TurnState): void;
  /** Storage of the reader's ratings of answers. If absent, the message has no rating buttons. */
  readonly feedback?: FeedbackSource;
  /** Resume the queue, which is paused because a turn failed. */
  goOn?(): void;
  /** Return the number of the displayed version and the count of versions; `null` if there is only one. */
  versions?(turn: TurnState): { readonly number: number; readonly count: number; go(step: -1 | 1): void } | null;
}

export class ArpMessage extends ArpElement {
  static override properties = {
    turn: { attribute: false },
    client: { attribute: false },
    context: { attribute: false },
    actions: { attribute: false },
    readonly: { type: Boolean },
    avatar: { type: String },
    activity: { attribute: false },
    copied: { state: true },
    editing: { state: true },
  };

  declare turn: TurnState | undefined;
  declare client: ArpClient | null;
  declare context: ArpContext;
  declare actions: MessageActions;
  /** Whether the message offers no answers and no actions. */
  declare readonly: boolean;
  /** Picture beside the agent's answers: an address on this page's own server, or a short text. */
  declare avatar: string;
  /** Whether tool calls and thinking are shown. */
  declare activity: boolean;
  declare protected copied: "yes" | "no" | null;
  declare protected editing: string | null;
  readonly #activity = new Activity();
  readonly #citations = new Citations();
  /** Element of the last text, while it is being written. */
  #growing: ArpProse | null = null;
  /** Context of blocks that are complete. */
  #completeContext: ArpContext = BARE;
  /** Context of blocks that are still being written. */
  #streaming: ArpContext = BARE;

  constructor() {
    super();
    this.context = BARE;
    this.client = null;
    this.actions = {};
    this.readonly = false;
    this.avatar = "";
    this.activity = true;
    this.copied = this.editing = null;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    adoptChatStyles(this.getRootNode());
    this.classList.add("arp-message");
  }

  /** Return whether to redraw. If text was only appended, give it to the prose element instead. */
  protected override shouldUpdate(changed: PropertyValues): boolean {
    const { turn } = this;
    const prose = this.#growing;
    const last = turn?.output.at(-1);
    // Any other change of the turn, or of another property, needs a redraw. Without one the message would be outdated.
    if (
      prose === null ||
      changed.size > 1 ||
      !last ||
      !isGrown(changed.get("turn") as TurnState | undefined, turn as TurnState)
    )
      return true;
    prose.text = last.props.content as string;
    return false;
  }

  protected override firstUpdated(): void {
    if (isCold && this.turn?.output.length === 0) {
      isCold = false;
      warmProse(this);
    }
  }

  protected override updated(): void {
    const last = [...this.children].findLast((one) => one.localName === "article")?.lastElementChild;
    this.#growing = last?.localName === "arp-prose" && (last as ArpProse).streaming ? (last as ArpProse) : null;
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has("turn") && this.turn) this.#activity.look(this.turn);
    if (changed.has("turn") && this.turn && this.#citations.look(this.turn.output))
      void loadComponents(SOURCES).catch(() => undefined);
    if (!changed.has("context")) return;
    this.#completeContext = { ...this.context, citations: this.#citations };
    this.#streaming = { ...this.#completeContext, streaming: true };
  }

  protected override update(changed: PropertyValues): void {
    drawAll(this, () => super.update(changed));
  }

  protected override render(): unknown {
    const { turn } = this;
    if (turn === undefined) return nothing;
    this.dataset.status = turn.status ?? "";
    const sections = sectionsOf(turn, this.activity, !this.context.registry?.has(AUTHOR));
    const isRunning = !turn.final && turn.status !== "queued";
    const last = sections.at(-1);
    const end = last?.kind === "answer" ? last.blocks.at(-1)?.kind : null;
    this.toggleAttribute("data-written", isRunning && (end === "prose" || end === "activity")); // for `follow.ts`
    const isSilent = isRunning && end == null && turn.status !== "waiting";
    return html`${repeat(
      sections,
      ({ key }) => key,
      (section, at) => this.#section(turn, section, at === sections.length - 1),
    )}${isSilent ? this.#waiting() : nothing}${this.#ending(turn)}${turn.final ? this.#tools(turn) : nothing}`;
  }

  #section(turn: TurnState, section: Section, isLast: boolean): TemplateResult {
    const { t } = this.context;
    if (section.kind === "said") return this.#inputOf(turn, section.input, section.first);
    const { author } = section;
    const avatar = author === null ? this.avatar : ""; // the avatar is the agent's; other authors have initials
    const who = t("saidBy", { name: author === null ? t("agent") : visible(author) });
    return html`<article class=${avatar ? "arp-reply arp-with-avatar" : "arp-reply"} aria-label=${who}>
      ${author === null ? html`<h2 class="arp-hidden">${who}</h2>` : authorLine(author)}
      ${picture(avatar, "arp-avatar")}${repeat(
        section.blocks,
        ({ key }) => key,
        (block, at) => this.#block(turn, block, isLast && at === section.blocks.length - 1),
      )}
    </article>`;
  }

  #block(turn: TurnState, block: Block, isLast: boolean): unknown {
    const isOpen = isLast && !turn.final;
    switch (block.kind) {
      case "prose":
        if (this.context.registry?.has("markdown")) return this.#ownProse(block);
        return html`<arp-prose .text=${live(block.text)} .streaming=${isOpen} .context=${isOpen ? this.#streaming : this.#completeContext}></arp-prose>`;
      case "component":
        // The request is answered in its card beside the message box. Drawn here too, it could be answered twice.
        if (turn.permissions.some(({ component }) => component === block.component.id))
          return permissionNote(block.component, this.context);
        return renderComponent(block.component, turn.final ? this.#completeContext : this.#streaming);
      case "activity":
        return this.#activity.draw(block.steps, turn, this.context, isOpen);
      case "error":
        return errorCard(block, this.context, this.#retry(turn));
    }
  }

  /** Return a text drawn by the application's own `markdown` component. */
  #ownProse({ key, text }: { readonly key: string; readonly text: string }): unknown {
    const id = `${this.turn?.id}/${key}`;
    return renderComponent({ id, type: "markdown", props: { content: text } }, this.context);
  }

  #inputOf(turn: TurnState, input: Wire.InputEcho, isFirst: boolean): TemplateResult {
    const { t } = this.context;
    if (isFirst && this.editing !== null) return this.#editor(turn, this.editing);
    const text = typeof input.data.text === "string" ? input.data.text : "";
    const isQueued = turn.status === "queued";
    const canEdit =
      isFirst && (turn.final || isQueued) && text !== "" && !this.readonly && this.actions.edit !== undefined;
    const who = t("saidBy", { name: input.origin ?? t("you") });
    return html`<article class="arp-said" aria-label=${who}>
      <h2 class="arp-hidden">${who}</h2>
      ${inputBubble(input, this.context)}
      <div class="arp-below">
        ${input.origin == null ? nothing : html`<p class="arp-caption">${visible(input.origin)}</p>`}${timeOf(input.at, t)}${isFirst && isQueued ? html`<p class="arp-caption">${queueText(turn, t)}</p>` : nothing}
      </div>
      ${
        canEdit || (isFirst && (isQueued || this.#versions(turn)))
          ? html`<div class="arp-doing">
            ${
              canEdit
                ? html`<button type="button" class="arp-icon-button" aria-label=${t("edit")} title=${t("edit")} @click=${() => this.#edit(text)}>${icon("edit")}</button>`
                : nothing
            }
            ${isQueued ? this.#inLine(turn) : nothing} ${this.#switcher(turn)}
          </div>`
          : nothing
      }
    </article>`;
  }

  /** Return the actions on a queued turn. */
  #inLine(turn: TurnState): unknown {
    const { t } = this.context;
    const { leave, promote, goOn } = this.actions;
    if (this.readonly) return nothing;
    return html`${
      turn.paused && turn.position === 1 && goOn
        ? html`<button type="button" class="arp-button arp-soft arp-small" @click=${() => goOn()}>${t("goOn")}</button>`
        : nothing
    }${
      promote && (turn.position ?? 1) > 1
        ? html`<button type="button" class="arp-icon-button" aria-label=${t("answerFirst")} title=${t("answerFirst")} @click=${() => promote(turn)}>${icon("send")}</button>`
        : nothing
    }${
      leave
        ? html`<button type="button" class="arp-icon-button" aria-label=${t("takeOut")} title=${t("takeOut")} @click=${() => leave(turn)}>${icon("close")}</button>`
        : nothing
    }`;
  }

  #versions(turn: TurnState) {
    return this.readonly ? null : (this.actions.versions?.(turn) ?? null);
  }

  #switcher(turn: TurnState): unknown {
    const versions = this.#versions(turn);
    if (versions === null) return nothing;
    const { t } = this.context;
    const { number, count } = versions;
    const step = (by: -1 | 1, name: "back" | "forward", label: string, isEnd: boolean) =>
      html`<button type="button" class="arp-icon-button arp-mirrored" aria-label=${label} ?disabled=${isEnd} @click=${() => versions.go(by)}>${icon(name)}</button>`;
    return html`<span class="arp-versions" role="group" aria-label=${t("branch", { number, count })}>
      ${step(-1, "back", t("previous"), number <= 1)}<span aria-hidden="true">${t.number(number)}/${t.number(count)}</span>${step(1, "forward", t("next"), number >= count)}
    </span>`;
  }

  #editor(turn: TurnState, text: string): TemplateResult {
    const { t } = this.context;
    const done = (box: HTMLTextAreaElement) => {
      this.editing = null;
      if (box.value.trim() !== "") this.actions.edit?.(turn, box.value);
    };
    const key = (event: KeyboardEvent) => {
      if (event.isComposing || event.keyCode === 229) return; // Enter accepts the composed word (229: Safari)
      if (event.key === "Escape") {
        event.stopPropagation(); // elsewhere in the chat, Escape stops the running turn
        this.#close();
      } else if (event.key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        done(event.target as HTMLTextAreaElement);
      }
    };
    return html`<form
      class="arp-said arp-editing"
      @submit=${(event: SubmitEvent) => {
        event.preventDefault();
        done((event.target as HTMLFormElement).querySelector("textarea") as HTMLTextAreaElement);
      }}
    >
      <textarea class="arp-bubble" dir="auto" rows="2" aria-label=${t("edit")} .value=${text} @keydown=${key}></textarea>
      <div class="arp-doing">
        <button type="button" class="arp-button arp-soft" @click=${() => this.#close()}>${t("cancel")}</button>
        <button type="submit" class="arp-button">${t("send")}</button>
      </div>
    </form>`;
  }

  async #edit(text: string): Promise<void> {
    this.editing = text;
    await this.updateComplete;
    const box = this.querySelector<HTMLTextAreaElement>(".arp-editing textarea");
    box?.focus();
    box?.setSelectionRange(text.length, text.length);
  }

  async #close(): Promise<void> {
    this.editing = null;
    await this.updateComplete;
    this.querySelector<HTMLElement>(".arp-said .arp-doing button")?.focus();
  }

  #waiting(): TemplateResult {
    return html`<p class="arp-typing" aria-hidden="true"><span></span><span></span><span></span></p>`;
  }

  /** Return how the turn ended, if it did not complete. A turn that a crash ended may still have an open question. */
  #ending({ status, errors, final }: TurnState): unknown {
    const { t } = this.context;
    if (status === "waiting" && final) return html`<p class="arp-ending">${t("yourTurn")}</p>`;
    if (status === "cancelled") return html`<p class="arp-ending">${icon("stop")} ${t("stopped")}</p>`;
    if (status === "failed" && errors.length === 0)
      return html`<p class="arp-ending arp-bad">${icon("alert")} ${t("failed")}</p>`;
    return nothing;
  }

  #retry(turn: TurnState): (() => void) | null {
    const { regenerate } = this.actions;
    return this.readonly || !turn.final || !regenerate ? null : () => regenerate(turn);
  }

  #tools(turn: TurnState): unknown {
    const { t } = this.context;
    const again = this.#retry(turn);
    const hasText = turn.output.length > 0;
    const time = timeOf(turn.at, t);
    if (!hasText && again === null && time === nothing) return nothing;
    const copying = this.copied === "yes" ? t("copied") : this.copied === "no" ? t("copyFailed") : t("copy");
    return html`<div class="arp-doing arp-under">
      ${
        hasText
          ? html`<button type="button" class="arp-icon-button" aria-label=${copying} title=${copying} @click=${() => this.#copy(turn)}>
            ${icon(this.copied === "yes" ? "check" : "copy")}
          </button>`
          : nothing
      }
      ${
        again && !turn.errors.length
          ? html`<button type="button" class="arp-icon-button" aria-label=${t("regenerate")} title=${t("regenerate")} @click=${again}>${icon("again")}</button>`
          : nothing
      }
      ${this.#rating(turn)}${time}
    </div>`;
  }

  #rating(turn: TurnState): unknown {
    const { feedback } = this.actions;
    if (feedback === undefined || this.readonly || turn.status !== "completed" || turn.output.length === 0)
      return nothing;
    void import("./rating.js").catch(() => undefined);
    return html`<arp-rating .turnId=${turn.id} .source=${feedback} .context=${this.context}></arp-rating>`;
  }

  async #copy(turn: TurnState): Promise<void> {
    const { copyMessage } = await import("./copying.js");
    const done = await copyMessage(turn, [...this.querySelectorAll(".arp-reply")]);
    this.copied = done ? "yes" : "no";
    this.context.announce(this.context.t(done ? "copied" : "copyFailed"));
    setTimeout(() => (this.copied = null), 2000);
  }
}

/** Return the position of a turn in the queue. The next turn has no number. */
function queueText({ position, paused }: TurnState, t: Translate): string {
  const place = position != null && position > 1 ? t("inLine", { position }) : t("inQueue");
  return paused ? `${place} · ${t("linePaused")}` : place;
}

define("arp-message", ArpMessage);

warmProse();
