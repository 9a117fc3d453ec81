/**
 * `<arp-popups>`: popups over what the reader has just used, and overlays above the conversation. The code is loaded
 * with the first of them.
 *
 * Theory of operation. The agent side opens and closes popups and overlays. The reader closes one with its button or
 * with Escape, and a popup without an open question also with a click elsewhere. It is then hidden at once, even
 * without a connection, and stays hidden until the agent side confirms that it is closed.
 *
 * A popup takes the focus unless the reader is writing, and returns it when it closes. An overlay does not take the
 * focus; it is announced. Both are in the top layer of the browser, so that no element clips them. In a narrow window a
 * popup is a sheet at the lower edge.
 */

import type { ArpClient, Component, Wire } from "@agent-rendering/core";
import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";

import { CellController } from "../../base/cell_controller.js";
import { renderComponents } from "../../components/render.js";
import { createContext, type ArpContext } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import { addStyles } from "../../style/sheet.js";
import { freshId, visible } from "../../base/values.js";
import { icon } from "../icons.js";
import { asks } from "../status/awaited.js";
import "../message/message_styles.js";
import { anchorOf, place } from "./popup_place.js";
import styles from "./popups.css?inline";
import { watch } from "../watch.js";

/** Time without a change after which a size is reported to the agent. */
const REST_MS = 200;
const MOST_ANNOUNCED = 300;

/** A popup or overlay that is drawn. */
interface Shown {
  readonly context: ArpContext;
  /** Element that had the focus when the popup opened. */
  readonly before: Element | null;
  /** Id of the component that the popup lies over. */
  readonly over: string | null;
}

export class ArpPopups extends ArpElement {
  static override properties = { client: { attribute: false }, context: { attribute: false }, names: { state: true } };

  declare client: ArpClient | null;
  declare context: ArpContext;
  declare protected names: readonly string[];
  readonly #id = freshId("popup");
  readonly #shown = new Map<string, Shown>();
  /** Names that the reader has closed and the agent side has not yet confirmed. */
  readonly #closing = new Set<string>();
  readonly #cells = new CellController(this, () => this.#updateNames());
  readonly #stops: (() => void)[] = [];
  #sizes: ResizeObserver | null = null;
  /** Timers of the reports of sizes, by name. */
  readonly #reportTimers = new Map<string, ReturnType<typeof setTimeout>>();
  #isPlacing = false;

  constructor() {
    super();
    this.client = null;
    this.context = createContext();
    this.names = [];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.requestUpdate();
    const on = (target: EventTarget, type: string, listener: EventListener) => {
      target.addEventListener(type, listener, true);
      this.#stops.push(() => target.removeEventListener(type, listener, true));
    };
    on(window, "resize", this.#moved);
    on(document, "scroll", this.#moved);
    on(document, "pointerdown", this.#pressed as EventListener);
    if (typeof ResizeObserver !== "undefined") this.#sizes = new ResizeObserver((entries) => this.#resized(entries));
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    for (const stop of this.#stops.splice(0)) stop();
    for (const timer of this.#reportTimers.values()) clearTimeout(timer);
    this.#sizes?.disconnect();
    // The browser closes popovers that leave the document. Without this mark they would count as open and stay
    // invisible when the chat is moved within the document.
    for (const name of this.names) delete this.#card(name)?.dataset.state;
  }

  /** Close a popup or overlay, here and in every other renderer of the session. */
  close(name: string): void {
    this.#closing.add(name);
    this.client?.closeSurface(name);
    this.#updateNames();
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (!changed.has("client")) return;
    this.#cells.observe(...(this.client === null ? [] : [this.client.store.popupNames]));
    this.#updateNames();
  }

  #updateNames(): void {
    const names = this.client?.store.popupNames.get() ?? [];
    // The close is confirmed. Without this, a later popup of the same name would never be shown.
    for (const name of this.#closing) if (!names.includes(name)) this.#closing.delete(name);
    const next = names.filter((name) => !this.#closing.has(name));
    if (next.join("\0") !== this.names.join("\0")) this.names = next;
  }

  #info(name: string): Wire.SurfaceInfo {
    return this.client?.store.surfaceInfo(name).get() ?? {};
  }

  #card(name: string): HTMLElement | null {
    return (
      [...this.querySelectorAll<HTMLElement>(":scope > .arp-popup")].find(({ dataset }) => dataset.surface === name) ??
      null
    );
  }

  // -- coming and going --------------------------------------------------------------------------

  protected override update(changed: PropertyValues): void {
    const { activeElement } = this.getRootNode() as Document;
    const gone = [...this.#shown.keys()].filter((name) => !this.names.includes(name));
    const left = gone.find((name) => this.#card(name)?.contains(activeElement));
    const before = left === undefined ? null : (this.#shown.get(left) as Shown).before;
    // The focus and the anchor are read before drawing, which removes the closed popup. The anchor is the component and
    // not its row: the agent often draws rows again after the reader used the popup, and the focus would be lost.
    const anchor =
      left === undefined ? null : anchorOf(this.#around(left), { component: (this.#shown.get(left) as Shown).over });
    super.update(changed);
    for (const name of gone) this.#shown.delete(name);
    if (left !== undefined) this.#giveBack(before, anchor);
    for (const name of this.names) if (!this.#isOpen(name)) this.#open(name, activeElement);
    this.#moved();
  }

  #isOpen(name: string): boolean {
    return this.#card(name)?.dataset.state === "open";
  }

  #open(name: string, active: Element | null): void {
    const card = this.#card(name);
    if (card === null) return;
    card.dataset.state = "open";
    const over = this.#anchor(name);
    if (over !== null) this.dispatchEvent(new CustomEvent("arp-reveal", { detail: over, bubbles: true }));
    card.showPopover?.(); // older browsers lack it; there the card is above the rest by its position in the document
    this.#sizes?.observe(card);
    const isWriting =
      active !== null &&
      active.matches("textarea, input:not([type=radio], [type=checkbox])") &&
      (active as HTMLInputElement).value !== "";
    // Taken from a field with text, the focus would interrupt the reader in the middle of a word.
    if (this.#info(name).role === "popup" && !isWriting) card.focus({ preventScroll: true });
    else setTimeout(() => this.context.announce(card.innerText.trim().slice(0, MOST_ANNOUNCED)));
  }

  /**
   * Return the focus to the element that had it before the popup. If that element is gone, focus the component that the
   * popup was over; if that is gone too, have the chat focus the message box.
   */
  #giveBack(before: Element | null, anchor: HTMLElement | null): void {
    const isThere = before instanceof HTMLElement && before.isConnected && before !== document.body;
    if (isThere) before.focus({ preventScroll: true });
    const { activeElement } = this.getRootNode() as Document;
    if (isThere && activeElement === before) return; // an element that was disabled meanwhile does not take the focus
    if (anchor?.isConnected) {
      anchor.tabIndex = -1;
      anchor.focus({ preventScroll: true });
    } else this.dispatchEvent(new CustomEvent("arp-settled", { bubbles: true }));
  }

  #key = (event: KeyboardEvent, name: string): void => {
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
    event.preventDefault();
    event.stopPropagation(); // elsewhere in the chat, Escape stops the running turn
    this.close(name);
  };

  #pressed = (event: PointerEvent): void => {
    const name = this.names.findLast((name) => this.#info(name).role === "popup");
    const card = name === undefined ? null : this.#card(name);
    if (name === undefined || card === null || event.composedPath().includes(this)) return;
    // A popup with an open question stays: a click beside it must not dismiss the question by accident.
    const isAsking = this.client?.store.surface(name).get().some(asks) ?? false;
    if (!isAsking) this.close(name);
  };

  // -- positions ---------------------------------------------------------------------------------

  #moved = (): void => {
    if (this.#isPlacing || this.names.length === 0) return;
    this.#isPlacing = true;
    requestAnimationFrame(() => {
      this.#isPlacing = false;
      const offsets = new Map<string, number>();
      for (const name of this.names) {
        const card = this.#card(name);
        if (card !== null) place(card, this.#info(name), this.#anchor(name), this.#around(name), offsets);
      }
    });
  };

  #around(name: string): HTMLElement {
    const chat = this.parentElement ?? document.body;
    const { parent = "main" } = this.#info(name);
    const found =
      parent === "main" || parent === null
        ? null
        : [...chat.querySelectorAll<HTMLElement>("[data-surface]")].find(({ dataset }) => dataset.surface === parent);
    return found ?? chat.querySelector<HTMLElement>(".arp-body") ?? chat;
  }

  #anchor(name: string): HTMLElement | null {
    return anchorOf(this.#around(name), this.#info(name));
  }

  #resized(entries: readonly ResizeObserverEntry[]): void {
    this.#moved();
    for (const { target } of entries) {
      const name = (target as HTMLElement).dataset.surface as string;
      clearTimeout(this.#reportTimers.get(name));
      const report = () => {
        const { width, height } = target.getBoundingClientRect();
        if (this.names.includes(name))
          this.client?.tellOfSurface(name, "resize", {
            width: Math.round(width),
            height: Math.round(height),
            states: ["activated"],
          });
      };
      this.#reportTimers.set(name, setTimeout(report, REST_MS));
    }
  }

  // -- drawing -----------------------------------------------------------------------------------

  protected override render(): TemplateResult {
    return html`${repeat(
      this.names,
      (name) => name,
      (name) => this.#popup(name),
    )}`;
  }

  #popup(name: string): TemplateResult {
    const client = this.client as ArpClient;
    const { role, anchor, title = "", component = null } = this.#info(name);
    let shown = this.#shown.get(name);
    if (shown === undefined)
      this.#shown.set(
        name,
        (shown = {
          context: this.#contextOf(client, name),
          before: (this.getRootNode() as Document).activeElement,
          over: component,
        }),
      );
    const { context } = shown;
    const cell = client.store.surface(name);
    const drawn = { get: () => renderComponents(cell.get(), context), subscribe: cell.subscribe };
    const at = `${this.#id}-${name}`;
    const label = title ? `${context.t("close")}: ${visible(title)}` : context.t("close");
    return html`<div
      class="arp-popup" popover="manual" data-surface=${name} data-kind=${role ?? "popup"} data-anchor=${anchor ?? nothing} tabindex="-1"
      role=${role === "popup" ? "dialog" : "group"} aria-labelledby=${title ? at : nothing} aria-label=${title ? nothing : context.t("details")}
      @keydown=${(event: KeyboardEvent) => this.#key(event, name)}
      @focusin=${(event: FocusEvent) => this.#focus(event, name, "focus")} @focusout=${(event: FocusEvent) => this.#focus(event, name, "unfocus")}
    >
      <header class="arp-popup-head">
        ${title ? html`<h2 id=${at} dir="auto">${visible(title)}</h2>` : html`<span></span>`}
        <button type="button" class="arp-icon-button" aria-label=${label} title=${label} @click=${() => this.close(name)}>${icon("close")}</button>
      </header>
      <div class="arp-popup-body">${watch(drawn)}</div>
    </div>`;
  }

  #focus({ relatedTarget, currentTarget }: FocusEvent, name: string, what: "focus" | "unfocus"): void {
    // A move of the focus within the popup is neither a focus nor an unfocus of its surface.
    const wasInside = relatedTarget instanceof Node && (currentTarget as Element).contains(relatedTarget);
    if (!wasInside) this.client?.tellOfSurface(name, what);
  }

  /** Return a context whose answers name the surface, since another surface may have a component with the same id. */
  #contextOf(client: ArpClient, surface: string): ArpContext {
    const emitAction = (component: Component, name: string, payload: unknown) =>
      this.dispatchEvent(
        new CustomEvent("arp-action", { detail: { component, name, payload }, bubbles: true, composed: true }),
      );
    return {
      ...this.context,
      answer: (component, value, files = []) => {
        emitAction(component, "answer", value);
        return client.answer(component, value, { files, surface });
      },
      decline: (component) => {
        emitAction(component, "decline", null);
        return client.decline(component, { surface });
      },
      action: (component, name, payload) => void client.sendAction(component.id, name, payload, { surface }),
    };
  }
}

addStyles(styles);
define("arp-popups", ArpPopups);
