/** `<arp-menu>`: a button that opens a menu. Arrow keys move in the menu, Escape closes it. */

import { html, nothing, type TemplateResult } from "lit";

import { ArpElement, define } from "../../base/element.js";
import { freshId } from "../../base/values.js";
import { icon, type IconName } from "../icons.js";
import css from "./menu.css?inline";
import { adopter } from "../styles.js";

export interface MenuItem {
  readonly label: string;
  /** Additional description, in small letters. */
  readonly detail?: string;
  readonly icon?: IconName;
  /** Whether this one of several exclusive items is selected; absent for other items. */
  readonly checked?: boolean;
  /** Heading of a group that begins with this item. */
  readonly group?: string;
  run(): void;
}

const GAP_PX = 4;
const adopt = adopter(css);

export class ArpMenu extends ArpElement {
  static override properties = {
    label: { attribute: false },
    items: { attribute: false },
    sign: { attribute: false },
    text: { attribute: false },
    isOpen: { state: true },
  };

  /** Name of the button for screen readers. */
  declare label: string;
  declare items: readonly MenuItem[];
  declare sign: IconName;
  /** Text on the button, beside the icon. */
  declare text: string;
  declare protected isOpen: boolean;
  readonly #id = freshId("menu");

  constructor() {
    super();
    this.label = this.text = "";
    this.items = [];
    this.sign = "more";
    this.isOpen = false;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    adopt(this.getRootNode());
  }

  protected override render(): TemplateResult {
    return html`<button
        type="button"
        class="arp-icon-button"
        aria-haspopup="menu"
        aria-expanded=${this.isOpen ? "true" : "false"}
        aria-controls=${this.#id}
        aria-label=${this.label}
        title=${this.label}
        @click=${() => this.#list?.togglePopover()}
        @keydown=${(event: KeyboardEvent) => {
          if (event.key !== "ArrowDown") return;
          event.preventDefault();
          this.#list?.showPopover();
        }}
      >
        ${icon(this.sign)}${this.text === "" ? nothing : html`<span>${this.text}</span>`}
      </button>
      <div id=${this.#id} class="arp-menu-list" role="menu" aria-label=${this.label} popover="auto" @toggle=${this.#toggled} @keydown=${this.#key}>
        ${this.isOpen ? this.items.map((item) => this.#item(item)) : nothing}
      </div>`;
  }

  #item(item: MenuItem): unknown {
    const { label, checked, group } = item;
    return html`${group === undefined ? nothing : html`<p class="arp-menu-group" role="presentation">${group}</p>`}<button
        type="button"
        tabindex="-1"
        role=${checked === undefined ? "menuitem" : "menuitemradio"}
        aria-checked=${checked === undefined ? nothing : checked ? "true" : "false"}
        @click=${() => {
          this.#list?.hidePopover();
          item.run();
        }}
      >
        ${item.icon ? icon(item.icon) : html`<span class="arp-menu-blank"></span>`}<span class="arp-menu-label"><bdi>${label}</bdi>${item.detail ? html`<small><bdi>${item.detail}</bdi></small>` : nothing}</span>${checked ? icon("check") : nothing}
      </button>`;
  }

  get #list(): HTMLElement | null {
    return this.querySelector(".arp-menu-list");
  }

  get #buttons(): HTMLElement[] {
    return [...(this.#list?.querySelectorAll<HTMLElement>("button") ?? [])];
  }

  #toggled = async (event: ToggleEvent): Promise<void> => {
    this.isOpen = event.newState === "open";
    if (!this.isOpen) return;
    await this.updateComplete;
    this.#place();
    this.#buttons[0]?.focus();
  };

  /** Place the list inside the window, below the button, or above it if it does not fit below. */
  #place(): void {
    const list = this.#list as HTMLElement;
    const button = (this.querySelector("button") as HTMLElement).getBoundingClientRect();
    const { width, height } = list.getBoundingClientRect();
    const isRightToLeft = getComputedStyle(this).direction === "rtl";
    const wanted = isRightToLeft === button.left < innerWidth / 2 ? button.left : button.right - width;
    const left = Math.max(
      GAP_PX,
      Math.min(button.left < innerWidth / 2 ? button.left : wanted, innerWidth - width - GAP_PX),
    );
    const isBelow = button.bottom + height + GAP_PX < innerHeight || button.top < height;
    list.style.left = `${left}px`;
    list.style.top = `${isBelow ? button.bottom + GAP_PX : button.top - height - GAP_PX}px`;
  }

  #key = (event: KeyboardEvent): void => {
    const buttons = this.#buttons;
    const here = buttons.indexOf(document.activeElement as HTMLElement);
    const moves: { [key: string]: number } = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: -1 };
    const to = moves[event.key];
    if (to !== undefined) {
      event.preventDefault();
      buttons.at(to % buttons.length)?.focus();
    } else if (event.key === "Tab") this.#list?.hidePopover();
    // The popover closes itself. Elsewhere in the chat, Escape would also stop the running turn.
    if (event.key === "Escape") event.stopPropagation();
  };
}

define("arp-menu", ArpMenu);
