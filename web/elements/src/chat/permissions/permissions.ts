/**
 * `<arp-permissions>`: questions of tools for leave, as windows of ours beside the message box.
 *
 * Which components ask for permission is sent by the server, beside the components, so none that an agent
 * shows can pass for such a window. Nothing is ever allowed by accident: no button has the focus by
 * itself, Escape allows nothing, and a window takes the focus only where nobody is writing.
 */

import {
  parseJson,
  type ArpClient,
  type Component,
  type ErrorPayload,
  type OpenPermission,
} from "@agent-rendering/core";
import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";

import { CellController } from "../../base/cell_controller.js";
import { renderComponent } from "../../components/render.js";
import { createContext, showsRecording, type ArpContext } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import { isObject, visible } from "../../base/values.js";
import { clockText } from "../clock.js";
import { readInput, textOf } from "./edited_input.js";
import { wrong } from "../../base/wrong.js";
import { icon } from "../icons.js";
import "../message/message_styles.js";
import styles from "./permissions.css?inline";
import { addChatStyles } from "../styles.js";
import "../message/tool_detail.js";

export class ArpPermissions extends ArpElement {
  static override properties = { client: { attribute: false }, context: { attribute: false }, asked: { state: true } };

  declare client: ArpClient | null;
  declare context: ArpContext;
  declare protected asked: readonly OpenPermission[];
  readonly #cells = new CellController(this, () => this.#updatePending());
  /** The inputs that answer them, by component. */
  readonly #answered = new Map<string, string>();
  /** What is written of an input that is being changed, by component. */
  readonly #edits = new Map<string, string>();
  /** What is wrong with an answer, by component. */
  readonly #faults = new Map<string, unknown>();
  /** Why the agent side refused an answer, by component: when its window goes, somebody has to say so. */
  readonly #refusals = new Map<string, ErrorPayload>();
  #clock: ReturnType<typeof setInterval> | undefined;
  #session: string | null = null;

  constructor() {
    super();
    this.client = null;
    this.context = createContext();
    this.asked = [];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#runClock(); // it was stopped if the element was moved
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearInterval(this.#clock);
    this.#clock = undefined;
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (!changed.has("client")) return;
    const store = this.client?.store;
    this.#cells.observe(...(store ? [store.permissions, store.outgoing, store.status] : []));
    this.#updatePending();
  }

  #updatePending(): void {
    this.#forgetOtherSession();
    for (const { id, error } of this.client?.store.outgoing.get() ?? []) {
      const refused = error && [...this.#answered].find(([, input]) => input === id)?.[0];
      if (!refused) continue;
      this.#answered.delete(refused);
      this.#faults.set(refused, wrong(error, this.context.t));
      this.#refusals.set(refused, error);
      this.client?.discard(id);
    }
    const open = this.client === null || showsRecording(this.client) ? [] : this.client.store.permissions.get();
    for (const [id, error] of this.#refusals) {
      if (open.some(({ component }) => component.id === id)) continue;
      this.#refusals.delete(id); // another screen was first
      this.dispatchEvent(new CustomEvent<ErrorPayload>("arp-refused", { detail: error }));
    }
    const next = open.filter(({ component }) => !this.#answered.has(component.id));
    const isSame = next.length === this.asked.length && next.every((one, at) => one === this.asked[at]);
    if (isSame) return;
    const isNew = next.some(({ component }) => !this.asked.some((one) => one.component.id === component.id));
    this.asked = next;
    this.#runClock();
    if (isNew) void this.updateComplete.then(() => this.#offer());
  }

  /** Count down once a second while a shown permission expires. */
  #runClock(): void {
    const counts = this.isConnected && this.asked.some(({ permission }) => permission.expires_at);
    clearInterval(this.#clock);
    this.#clock = counts ? setInterval(() => this.requestUpdate(), 1000) : undefined;
  }

  /** Components of another session have the same ids. */
  #forgetOtherSession(): void {
    const session = this.client?.sessionId ?? null;
    if (session === this.#session) return;
    for (const kept of [this.#answered, this.#edits, this.#faults, this.#refusals]) kept.clear();
    this.#session = session;
  }

  /** Takes the focus if nobody has it. */
  #offer(): void {
    const active = document.activeElement;
    const card = this.querySelector<HTMLElement>(".arp-permission");
    const { t } = this.context;
    const tool = this.asked.at(-1)?.permission.tool ?? "";
    this.context.announce(t("permissionAsked", { tool: visible(tool) }));
    if (active === null || active === document.body) card?.focus();
  }

  protected override render(): TemplateResult {
    return html`${repeat(
      this.asked,
      ({ component }) => component.id,
      (asked) => this.#card(asked),
    )}`;
  }

  #card({ permission, component, run }: OpenPermission): TemplateResult {
    const { t } = this.context;
    const { tool, scopes = ["once"], session_rule: rule, editable, expires_at: ends } = permission;
    const { title, message } = component.props;
    const { id } = component;
    const [edit, fault] = [this.#edits.get(id), this.#faults.get(id)];
    const grant = (scope: "once" | "session") => {
      const written = this.#edits.get(id); // now: not all that is written is drawn anew
      const edited = written === undefined ? undefined : readInput(written);
      if (edited !== null)
        return this.#finish(component, () => this.client?.grant(component, scope, permission, edited));
      this.#faults.set(id, t("inputWrong"));
      this.requestUpdate();
      void this.updateComplete.then(() => this.querySelector<HTMLElement>(`${cardOf(id)} textarea`)?.focus());
    };
    const deny = () => {
      const reason = this.querySelector<HTMLInputElement>(`${cardOf(id)} input`)?.value.trim() ?? "";
      this.#finish(component, () => this.client?.deny(component, reason, permission));
    };
    const input = permission.input ?? run?.args;
    const ways = [
      { label: t("allowOnce"), kind: "arp-soft", act: () => grant("once") },
      ...(scopes.includes("session")
        ? [{ label: t("allowSession"), kind: "arp-soft", act: () => grant("session") }]
        : []),
      { label: t("denyPermission"), kind: "arp-soft arp-deny", act: deny },
    ];
    const key = (event: KeyboardEvent) => {
      const way = ways[Number(event.key) - 1];
      const isWriting = ["input", "textarea"].includes((event.target as HTMLElement).localName);
      if (isWriting || event.defaultPrevented || way === undefined || event.ctrlKey || event.metaKey || event.altKey)
        return;
      event.preventDefault();
      way.act();
    };
    return html`<section class="arp-permission" role="group" tabindex="-1" data-permission=${component.id} aria-label=${t("permissionAsked", { tool: visible(tool) })} @keydown=${key}>
      <h3>${icon("shield")}<span>${t("permissionAsked", { tool: "\u2068" + visible(tool) + "\u2069" })}</span></h3>
      <p dir="auto"><strong>${visible(String(title ?? ""))}</strong></p>
      ${typeof message === "string" && message !== "" ? html`<p dir="auto">${visible(message)}</p>` : nothing}
      ${input === undefined ? nothing : edit === undefined ? this.#arguments(tool, input, id) : this.#editor(id, edit, fault !== undefined)}
      ${fault === undefined ? nothing : html`<p class="arp-bad" role="alert" dir="auto">${fault}</p>`}
      ${rule && scopes.includes("session") ? html`<p class="arp-permission-rule" dir="auto">${t("sessionRule", { rule: "\u2068" + visible(rule) + "\u2069" })}</p>` : nothing}
      ${ends ? html`<p class="arp-caption" role="timer">${t("timeLeft", { time: clockText(secondsTo(ends), t) })}</p>` : nothing}
      <div class="arp-permission-buttons">
        ${ways.map(({ label, kind, act }, at) => html`<button type="button" class="arp-button ${kind}" @click=${act}>${label} <kbd aria-hidden="true">${at + 1}</kbd></button>`)}
        ${
          !editable || input === undefined
            ? nothing
            : edit === undefined
              ? html`<button type="button" class="arp-button arp-quiet arp-edit" @click=${() => this.#edit(id, textOf(input))}>${t("edit")}</button>`
              : html`<button type="button" class="arp-button arp-quiet" @click=${() => this.#discard(id)}>${t("cancel")}</button>`
        }
        <input class="arp-input arp-reason" dir="auto" aria-label=${t("denyReason")} placeholder=${t("denyReason")} maxlength="500" />
      </div>
    </section>`;
  }

  #edit(id: string, text: string): void {
    this.#edits.set(id, text);
    this.requestUpdate();
    void this.updateComplete.then(() => this.querySelector<HTMLElement>(`${cardOf(id)} textarea`)?.focus());
  }

  /** Shows the input as the agent wrote it again. */
  #discard(id: string): void {
    this.#edits.delete(id);
    this.#faults.delete(id);
    this.requestUpdate();
    void this.updateComplete.then(() => this.querySelector<HTMLElement>(`${cardOf(id)} .arp-edit`)?.focus());
  }

  #editor(id: string, text: string, isWrong: boolean): TemplateResult {
    const write = ({ target }: Event) => {
      this.#edits.set(id, (target as HTMLTextAreaElement).value);
      if (this.#faults.delete(id)) this.requestUpdate();
    };
    return html`<textarea class="arp-input arp-permission-input" dir="ltr" rows=${text.split("\n").length} spellcheck="false" autocomplete="off" aria-label=${this.context.t("toolArguments")}
      aria-invalid=${isWrong ? "true" : nothing} .value=${text} @input=${write}></textarea>`;
  }

  #arguments(tool: string, args: string, id: string): unknown {
    let read: unknown;
    try {
      read = parseJson(args);
    } catch {
      read = args;
    }
    if (read === null || read === "" || (isObject(read) && Object.keys(read).length === 0)) return nothing;
    const change = isObject(read) ? changeOf(read) : null;
    const rest = isObject(read) && change !== null ? change.rest : read;
    const asked = { callId: "", tool, args: change === null ? args : JSON.stringify(rest), ok: null, error: null };
    const isNone = change !== null && Object.keys(change.rest).length === 0;
    return html`${isNone ? nothing : html`<div class="arp-permission-arguments" tabindex="0" role="group" aria-label=${this.context.t("toolArguments")}><arp-tool-detail .run=${asked} .context=${this.context}></arp-tool-detail></div>`}
    ${
      change === null
        ? nothing
        : renderComponent(
            {
              id: `${id}-change`,
              type: "diff",
              props: { before: visible(change.before), after: visible(change.after) },
            },
            this.context,
          )
    }`;
  }

  #finish(component: Component, act: () => string | undefined): void {
    this.#faults.delete(component.id);
    this.#refusals.delete(component.id);
    const input = act();
    if (input !== undefined) this.#answered.set(component.id, input);
    this.context.announce(this.context.t("answerSent"));
    this.#updatePending();
    this.dispatchEvent(new CustomEvent("arp-settled", { bubbles: true }));
  }
}

function cardOf(id: string): string {
  return `[data-permission="${CSS.escape(id)}"]`;
}

function secondsTo(moment: string): number {
  return Math.max(0, Math.ceil((Date.parse(moment) - Date.now()) / 1000));
}

const PAIRS = [
  ["before", "after"],
  ["old", "new"],
  ["old_text", "new_text"],
  ["old_string", "new_string"],
] as const;

/** What arguments change of a text, if they say so; and the arguments without it. */
function changeOf(
  args: Readonly<Record<string, unknown>>,
): { before: string; after: string; rest: Record<string, unknown> } | null {
  for (const [from, to] of PAIRS) {
    const { [from]: before, [to]: after, ...rest } = args;
    if (typeof before === "string" && typeof after === "string") return { before, after, rest };
  }
  return null;
}

addChatStyles("permissions", styles);
define("arp-permissions", ArpPermissions);
