/**
 * `<arp-side-panel>`: the surfaces other than `main`, beside the conversation. The reader can close, reopen and resize
 * the panel. Its code is loaded with the first such surface.
 *
 * Theory of operation. The panel has two layouts, chosen by the width of the chat.
 *
 * *Beside* the conversation, the panel is open until the reader closes it. A strip with a button then remains. The
 * panel reopens by itself when content arrives that was not there when it was closed: a component with a new id, or a
 * question. Changes of known components (a progress bar) leave it closed. The closed state survives a reload, in this
 * tab and for this chat.
 *
 * *Over* the conversation, in a chat without space for both, the panel is a bar above the conversation. The bar opens
 * the panel over the whole chat. In this layout the panel never opens by itself, since it would cover what the reader
 * reads or writes; the bar shows that something is new, or that a question waits.
 */

import type { ArpClient, Cell, Storage, Wire } from "@agent-rendering/core";
import { panelOf, PanelState, type PanelContent } from "@agent-rendering/core/surfaces";
import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";

import { CellController } from "../../base/cell_controller.js";
import { renderComponents } from "../../components/render.js";
import { createContext, type ArpContext } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import { addStyles } from "../../style/sheet.js";
import { styled } from "../../base/styled.js";
import { freshId, visible } from "../../base/values.js";
import { browserStorage } from "../composer/drafts.js";
import { icon } from "../icons.js";
import "../message/message_styles.js";
import styles from "./side_panel.css?inline";
import { ADJACENT_PX, bounded, Border, DEFAULT_PX, LEAST_PX, mostOf, readWidth } from "./side_width.js";
import { watch } from "../watch.js";

/** Time without a change after which sizes are reported to the agent. */
const REST_MS = 200;

export class ArpSidePanel extends ArpElement {
  static override properties = {
    client: { attribute: false },
    context: { attribute: false },
    storage: { attribute: false },
    room: { state: true },
    width: { state: true },
    raised: { state: true },
  };

  declare client: ArpClient | null;
  declare context: ArpContext;
  /** Storage of the width; `null` stores nothing. */
  declare storage: Storage | null;
  /** Width of the whole chat, in CSS pixels. */
  declare protected room: number;
  /** Width of the panel that the reader has chosen, in CSS pixels; the panel is narrower if the chat is. */
  declare protected width: number;
  /** Whether the reader has opened the panel over the conversation. */
  declare protected raised: boolean;

  readonly #id = freshId("side");
  readonly #border = new Border(this, (width, isLast) => this.#resize(width, isLast));
  /** Whether the panel beside the conversation is closed, and what is new since. Survives a reload of the tab. */
  readonly #state = new PanelState(() => (this.storage === null ? null : sessionStorage));
  #panelCell: Cell<PanelContent> | null = null;
  readonly #cells = new CellController(this, () => this.#updateNews());
  #sizes: ResizeObserver | null = null;
  #reportTimer: ReturnType<typeof setTimeout> | undefined;
  /** Joined names of the surfaces at the last report of sizes. */
  #reportedNames = "";
  /** Element around the panel; needed to clean up after the panel was removed from it. */
  #chat: HTMLElement | null = null;

  constructor() {
    super();
    this.client = null;
    this.context = createContext();
    this.storage = browserStorage();
    this.room = this.width = 0;
    this.raised = false;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.requestUpdate(); // a move made the covered conversation reachable; cover it again below an open panel
    this.#chat = this.parentElement;
    this.#measure();
    if (this.#chat !== null && typeof ResizeObserver !== "undefined") {
      this.#sizes = new ResizeObserver(() => this.#measure());
      this.#sizes.observe(this.#chat);
    }
    this.addEventListener("keydown", this.#key);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.removeEventListener("keydown", this.#key);
    this.#sizes?.disconnect();
    clearTimeout(this.#reportTimer);
    this.#cover(false); // otherwise the conversation would stay inert without the panel
    this.#chat?.style.removeProperty("--_arp-gutter");
    this.#chat = null;
  }

  /** Open the panel and focus it. */
  async open(): Promise<void> {
    this.#state.open();
    this.raised = this.#isOver;
    this.requestUpdate();
    await this.updateComplete;
    this.querySelector<HTMLElement>(".arp-side-body")?.focus();
  }

  /** Close the panel and focus the button that reopens it. */
  async close(): Promise<void> {
    this.#state.close();
    this.raised = false;
    this.requestUpdate();
    await this.updateComplete;
    this.querySelector<HTMLElement>(".arp-side-open")?.focus();
  }

  // -- what shows --------------------------------------------------------------------------------

  get #isOver(): boolean {
    return this.room < ADJACENT_PX;
  }

  get #isOpen(): boolean {
    return this.#isOver ? this.raised : !this.#state.isClosed;
  }

  protected override willUpdate(changed: Map<PropertyKey, unknown>): void {
    if (this.width === 0) this.width = readWidth(this.storage);
    if (changed.has("client")) {
      this.#panelCell = this.client && panelOf(this.client);
      this.#cells.observe(...(this.#panelCell === null ? [] : [this.#panelCell]));
      this.#updateNews();
    }
    if (this.#isOpen) this.#state.see();
  }

  #updateNews(): void {
    const content = this.#panelCell?.get();
    if (content === undefined || content === this.#state.content) return;
    // Another chat: a panel that the reader opened over the one before must not cover this one.
    if (this.#state.update(content)) this.raised = false;
    this.requestUpdate();
  }

  // -- its size ----------------------------------------------------------------------------------

  #measure(): void {
    const chat = this.#chat;
    if (chat === null) return;
    this.room = chat.clientWidth;
    this.#reportSizes();
    // The message box leaves the same margin as the scroll bar of the conversation, so that their edges line up.
    const scroller = this.#isOver ? null : chat.querySelector<HTMLElement>(".arp-scroller");
    const gutter = scroller === null ? 0 : (scroller.offsetWidth - scroller.clientWidth) / 2;
    chat.style.setProperty("--_arp-gutter", `${gutter}px`);
  }

  #resize(width: number | null, isLast: boolean): void {
    this.width = bounded(width ?? DEFAULT_PX, this.room);
    if (!isLast) return; // one report and one write per drag, not per pixel
    this.#reportSizes();
    try {
      if (width === null) this.storage?.removeItem(Border.KEY);
      else this.storage?.setItem(Border.KEY, String(this.width));
    } catch {
      // The storage is full or forbidden: the width lasts until the reload.
    }
  }

  /** Report the sizes of the surfaces to the agent, once they have stopped changing. */
  #reportSizes(): void {
    clearTimeout(this.#reportTimer);
    this.#reportTimer = setTimeout(() => {
      for (const surface of this.querySelectorAll<HTMLElement>("[data-surface]")) {
        const { width, height } = surface.getBoundingClientRect();
        const name = surface.dataset.surface as string;
        const states = this.#info(name)?.fullscreen ? ["activated", "fullscreen"] : ["activated"];
        this.client?.tellOfSurface(name, "resize", { width: Math.round(width), height: Math.round(height), states });
      }
    }, REST_MS);
  }

  /** Make the parts of the chat below the panel inert, or usable again. The focus must not enter what is covered. */
  #cover(isCovered: boolean): void {
    for (const part of this.#chat?.querySelectorAll<HTMLElement>(":scope > :is(.arp-body, .arp-dock)") ?? [])
      part.inert = isCovered;
  }

  #key = (event: KeyboardEvent): void => {
    // In a field or an open menu, Escape belongs to that control. Closing the panel would lose the reader's text.
    const isWriting =
      (event.target as Element).closest("input, textarea, select, [contenteditable], [aria-expanded=true]") !== null;
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || isWriting || !this.#isOpen) return;
    event.preventDefault();
    event.stopPropagation(); // elsewhere in the chat, Escape stops the running turn
    void this.close();
  };

  // -- drawing -----------------------------------------------------------------------------------

  protected override updated(): void {
    this.#cover(this.#isOver && this.#isOpen && this.#state.content.surfaces.length > 0);
    const names = this.client?.store.surfaceNames.get().join("\0") ?? "";
    if (names === this.#reportedNames) return;
    this.#reportedNames = names;
    this.#reportSizes();
  }

  protected override render(): unknown {
    const names = this.client?.store.surfaceNames.get() ?? [];
    const [first] = names;
    if (first === undefined) return nothing;
    const { t } = this.context;
    const title = names.length === 1 ? this.#title(first) : t("sidePanel");
    this.toggleAttribute(
      "data-full",
      names.some((name) => this.#info(name)?.fullscreen),
    );
    this.dataset.layout = this.#isOver ? "over" : "side";
    this.dataset.state = this.#isOpen ? "open" : "closed";
    return this.#isOpen ? this.#panel(names, title) : this.#opener(title);
  }

  #opener(title: string): TemplateResult {
    const { t } = this.context;
    const label = `${t("showSidePanel")}: ${title}`;
    const hint = this.#state.asks ? t("yourTurn") : "";
    const hasMark = this.#state.asks || this.#state.hasNews;
    return html`<button
      type="button" class="arp-icon-button arp-side-open" aria-expanded="false" aria-label=${hint ? `${label}. ${hint}` : label} title=${label}
      @click=${() => this.open()}
    >${icon("panel")}${this.#isOver && !hint ? html`<span dir="auto">${title}</span>` : nothing}${
      hasMark ? html`<span class="arp-side-mark"></span>` : nothing
    }${this.#isOver && hint ? html`<span class="arp-side-told">${hint}</span>` : nothing}</button>`;
  }

  #panel(names: readonly string[], title: string): TemplateResult {
    const { t } = this.context;
    const width = bounded(this.width, this.room);
    const label = `${t("close")}: ${title}`;
    return html`<div class="arp-side" ${styled(this.#isOver ? {} : { width: `${width}px` })}>
      ${
        this.#isOver
          ? nothing
          : html`<div
            class="arp-side-border" role="separator" tabindex="0" aria-orientation="vertical" aria-label=${t("resizeSidePanel")} title=${t("resizeSidePanel")}
            aria-controls=${this.#id} aria-valuenow=${width} aria-valuemin=${LEAST_PX} aria-valuemax=${mostOf(this.room)}
            @keydown=${(event: KeyboardEvent) => this.#border.key(event, width, this.room)} @pointerdown=${this.#border.grab}
            @dblclick=${() => this.#resize(null, true)}
          ></div>`
      }
      <header class="arp-side-head">
        <h2 id="${this.#id}-title" dir="auto">${title}</h2>
        <button type="button" class="arp-icon-button" aria-label=${label} title=${label} aria-controls=${this.#id} @click=${() => this.#closeFirst(names)}>${icon("close")}</button>
      </header>
      <section class="arp-side-body" id=${this.#id} tabindex="0" aria-labelledby="${this.#id}-title">
        ${repeat(
          names,
          (name) => name,
          (name) => this.#surface(name, title),
        )}
      </section>
    </div>`;
  }

  #surface(name: string, above: string): TemplateResult {
    const cell = (this.client as ArpClient).store.surface(name);
    const drawn = { get: () => renderComponents(cell.get(), this.context), subscribe: cell.subscribe };
    const title = this.#title(name);
    const hasTitle = title !== above;
    const label = `${this.context.t("close")}: ${title}`;
    const closer =
      hasTitle && this.#info(name) !== undefined
        ? html`<button type="button" class="arp-icon-button" aria-label=${label} title=${label} @click=${() => this.#closeSurface(name)}>${icon("close")}</button>`
        : nothing;
    return html`<div
      class="arp-surface" data-surface=${name} role=${hasTitle ? "group" : nothing} aria-label=${hasTitle ? title : nothing}
      @focusin=${(event: FocusEvent) => this.#focus(event, name, "focus")} @focusout=${(event: FocusEvent) => this.#focus(event, name, "unfocus")}
    >
      ${hasTitle ? html`<div class="arp-surface-head"><h3 dir="auto">${title}</h3>${closer}</div>` : nothing}${watch(drawn)}
    </div>`;
  }

  #info(name: string): Wire.SurfaceInfo | undefined {
    return this.client?.store.surfaceInfo(name).get();
  }

  #title(name: string): string {
    return visible(this.#info(name)?.title ?? "") || titleOf(name, this.context.t("sidePanel"));
  }

  /** Close the surface if it is the only one and the agent opened it explicitly; otherwise close only the panel. */
  #closeFirst(names: readonly string[]): void {
    const [name] = names;
    if (names.length === 1 && name !== undefined && this.#info(name) !== undefined) this.#closeSurface(name);
    else void this.close();
  }

  #closeSurface(name: string): void {
    this.client?.closeSurface(name);
    this.dispatchEvent(new CustomEvent("arp-settled", { bubbles: true }));
  }

  #focus({ relatedTarget, currentTarget }: FocusEvent, name: string, what: "focus" | "unfocus"): void {
    // A move of the focus within the surface is neither a focus nor an unfocus of the surface.
    const wasInside = relatedTarget instanceof Node && (currentTarget as Element).contains(relatedTarget);
    if (!wasInside) this.client?.tellOfSurface(name, what);
  }
}

/**
 * Return a title made from the name of a surface: `build_status` becomes "Build status".
 *
 * @param otherwise Title of a surface whose name says only where it is, such as `side` or `right-panel`.
 */
export function titleOf(name: string, otherwise: string): string {
  if (/^(side|right|left)?[-_ ]?(bar|panel|pane)?$/i.test(name)) return otherwise;
  if (!/^[a-z][a-z0-9]*([-_][a-z0-9]+)*$/.test(name)) return visible(name);
  const words = name.replace(/[-_]/g, " ");
  return (words[0] as string).toUpperCase() + words.slice(1);
}

addStyles(styles);
define("arp-side-panel", ArpSidePanel);
