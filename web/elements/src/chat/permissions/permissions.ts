/**
 * `<arp-permissions>`: permission requests of tools, as cards beside the message box.
 *
 * Theory of operation. The server lists the permission requests apart from the components, so an agent cannot imitate
 * such a card with a component. `PermissionRequests` (core) holds the requests, edited inputs and faults; this element
 * draws them. Nothing is allowed by accident: no button gets the focus by itself, Escape allows nothing, a number key
 * answers only while the focus is in the card and not in a field, and a new card takes the focus only if nothing else
 * has it. All text of the agent and of the tool is drawn as text, with deceptive characters made visible.
 */

import { parseJson, type ArpClient, type ErrorPayload, type OpenPermission } from "@agent-rendering/core";
import { PermissionRequests, textOf } from "@agent-rendering/core/permissions";
import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";

import { CellController } from "../../base/cell_controller.js";
import { renderComponent } from "../../components/render.js";
import { createContext, type ArpContext } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import { isObject, visible } from "../../base/values.js";
import { clockText } from "../clock.js";
import { wrong } from "../../base/wrong.js";
import { icon } from "../icons.js";
import "../message/message_styles.js";
import styles from "./permissions.css?inline";
import { addChatStyles } from "../styles.js";
import "../message/tool_detail.js";

export class ArpPermissions extends ArpElement {
  static override properties = { client: { attribute: false }, context: { attribute: false } };

  declare client: ArpClient | null;
  declare context: ArpContext;
  #requests: PermissionRequests | null = null;
  readonly #cells = new CellController(this, () => this.#update());
  #clock: ReturnType<typeof setInterval> | undefined;

  constructor() {
    super();
    this.client = null;
    this.context = createContext();
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#runClock(); // a move within the document has stopped it
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearInterval(this.#clock);
    this.#clock = undefined;
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (!changed.has("client")) return;
    const { client } = this;
    const refused = (detail: ErrorPayload) => this.dispatchEvent(new CustomEvent("arp-refused", { detail }));
    this.#cells.observe(); // the same requests are observed again below, with the cells of another client
    // A new token makes a new client of the same session. A new object would lose the input that is being edited.
    if (client && this.#requests) this.#requests.client = client;
    else this.#requests = client && new PermissionRequests(client, refused);
    if (this.#requests) this.#cells.observe(this.#requests);
    this.#update(true);
    this.#runClock(); // the requests of the client before may have had a deadline: its clock must stop
  }

  get #pending(): readonly OpenPermission[] {
    return this.#requests?.pending ?? [];
  }

  /** @param isNewClient Whether the client has changed: it may still be loading the requests that were shown before. */
  #update(isNewClient = false): void {
    const before = this.#pending;
    if (!this.#requests?.update()) return;
    const { announced } = this.#requests;
    this.requestUpdate();
    this.#runClock();
    const ids = this.#pending.map(({ component }) => component.id);
    const isNew = ids.some((id) => !announced.has(id));
    // A request that was closed and comes back, as after a refused answer, is announced again.
    if (!isNewClient) for (const { component } of before) announced.delete(component.id);
    for (const id of ids) announced.add(id);
    if (isNew) void this.updateComplete.then(() => this.#offer());
  }

  /** Redraw once a second while a request with a deadline is shown. */
  #runClock(): void {
    const counts = this.isConnected && this.#pending.some(({ permission }) => permission.expires_at);
    clearInterval(this.#clock);
    this.#clock = counts ? setInterval(() => this.requestUpdate(), 1000) : undefined;
  }

  /** Announce the newest request, and focus a card if nothing else has the focus. */
  #offer(): void {
    const active = document.activeElement;
    const card = this.querySelector<HTMLElement>(".arp-permission");
    const { t } = this.context;
    const tool = this.#pending.at(-1)?.permission.tool ?? "";
    this.context.announce(t("permissionAsked", { tool: visible(tool) }));
    // A card that took the focus from a field would treat the next typed number as an answer.
    if (active === null || active === document.body) card?.focus();
  }

  protected override render(): TemplateResult {
    return html`${repeat(
      this.#pending,
      ({ component }) => component.id,
      (request) => this.#card(this.#requests as PermissionRequests, request),
    )}`;
  }

  #card(requests: PermissionRequests, request: OpenPermission): TemplateResult {
    const { t } = this.context;
    const { permission, component, run } = request;
    const { tool, scopes = ["once"], session_rule: rule, editable, expires_at: ends } = permission;
    const { title, message } = component.props;
    const { id } = component;
    const [edit, fault] = [requests.editOf(id), requests.faultOf(id)];
    const grant = (scope: "once" | "session") => {
      if (requests.grant(request, scope)) this.#answered();
      else this.#redraw(id, "textarea"); // the edited input cannot be sent: nothing is allowed until it is corrected
    };
    const deny = () => {
      requests.deny(request, this.querySelector<HTMLInputElement>(`${cardOf(id)} input`)?.value.trim() ?? "");
      this.#answered();
    };
    const input = permission.input ?? run?.args; // a permission without an input asks for the arguments of the call
    const ways = [
      { label: t("allowOnce"), kind: "arp-soft", act: () => grant("once") },
      ...(scopes.includes("session")
        ? [{ label: t("allowSession"), kind: "arp-soft", act: () => grant("session") }]
        : []),
      { label: t("denyPermission"), kind: "arp-soft arp-deny", act: deny },
    ];
    // Number keys answer. In a field a number is text, and with a modifier the key belongs to the browser.
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
      ${input === undefined ? nothing : edit === undefined ? this.#arguments(tool, input, id) : this.#editor(requests, id, edit)}
      ${fault === undefined ? nothing : html`<p class="arp-bad" role="alert" dir="auto">${fault === "input" ? t("inputWrong") : wrong(fault, t)}</p>`}
      ${rule && scopes.includes("session") ? html`<p class="arp-permission-rule" dir="auto">${t("sessionRule", { rule: "\u2068" + visible(rule) + "\u2069" })}</p>` : nothing}
      ${ends ? html`<p class="arp-caption" role="timer">${t("timeLeft", { time: clockText(secondsTo(ends), t) })}</p>` : nothing}
      <div class="arp-permission-buttons">
        ${ways.map(({ label, kind, act }, at) => html`<button type="button" class="arp-button ${kind}" @click=${act}>${label} <kbd aria-hidden="true">${at + 1}</kbd></button>`)}
        ${
          !editable || input === undefined
            ? nothing
            : edit === undefined
              ? html`<button type="button" class="arp-button arp-quiet arp-edit" @click=${() => {
                  requests.edit(id, textOf(input));
                  this.#redraw(id, "textarea");
                }}>${t("edit")}</button>`
              : html`<button type="button" class="arp-button arp-quiet" @click=${() => {
                  requests.discardEdit(id);
                  this.#redraw(id, ".arp-edit");
                }}>${t("cancel")}</button>`
        }
        <input class="arp-input arp-reason" dir="auto" aria-label=${t("denyReason")} placeholder=${t("denyReason")} maxlength="500" />
      </div>
    </section>`;
  }

  /** Redraw, and focus a part of a card. */
  #redraw(id: string, part: string): void {
    this.requestUpdate();
    void this.updateComplete.then(() => this.querySelector<HTMLElement>(`${cardOf(id)} ${part}`)?.focus());
  }

  #editor(requests: PermissionRequests, id: string, text: string): TemplateResult {
    const write = ({ target }: Event) => {
      if (requests.edit(id, (target as HTMLTextAreaElement).value)) this.requestUpdate();
    };
    const isWrong = requests.faultOf(id) !== undefined;
    return html`<textarea class="arp-input arp-permission-input" dir="ltr" rows=${text.split("\n").length} spellcheck="false" autocomplete="off" aria-label=${this.context.t("toolArguments")}
      aria-invalid=${isWrong ? "true" : nothing} .value=${text} @input=${write}></textarea>`;
  }

  #arguments(tool: string, args: string, id: string): unknown {
    let read: unknown;
    try {
      read = parseJson(args);
    } catch {
      read = args; // not JSON: shown as it is, so that the reader sees what would run
    }
    if (read === null || read === "" || (isObject(read) && Object.keys(read).length === 0)) return nothing;
    // A changed text is shown as a diff, and the other arguments above it. Together they are all that would run.
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

  #answered(): void {
    this.context.announce(this.context.t("answerSent"));
    this.#update();
    this.dispatchEvent(new CustomEvent("arp-settled", { bubbles: true }));
  }
}

function cardOf(id: string): string {
  return `[data-permission="${CSS.escape(id)}"]`;
}

function secondsTo(moment: string): number {
  return Math.max(0, Math.ceil((Date.parse(moment) - Date.now()) / 1000));
}

/** Names of arguments that hold a text before and after a change. */
const PAIRS = [
  ["before", "after"],
  ["old", "new"],
  ["old_text", "new_text"],
  ["old_string", "new_string"],
] as const;

/** Return the text before and after a change, and the other arguments; `null` if the arguments describe no change. */
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
