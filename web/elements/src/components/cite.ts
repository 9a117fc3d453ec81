/**
 * `<arp-cite>`: `[2]` in an agent's text. If its turn has a second source, it is a link to the entry in the list of
 * sources, with a card on hover and focus. Otherwise it stays plain text.
 */

import { html, LitElement, nothing, type TemplateResult } from "lit";
import { CellController } from "../base/cell_controller.js";
import { NOWHERE, type ArpContext } from "../base/context.js";
import type { Source } from "../base/citations.js";
import { define } from "../base/element.js";
import { linkTarget } from "../base/url.js";
import { freshId, visible } from "../base/values.js";

/** Smallest distance of the card from the edge of the window. */
const MARGIN_PX = 8;

/** A reference to a source. */
export class ArpCite extends LitElement {
  static override properties = {
    number: { attribute: false },
    context: { attribute: false },
    isShown: { state: true },
  };

  /** Number of the source, from 1. */
  declare number: number;
  declare context: ArpContext;
  declare protected isShown: boolean;
  readonly #card = freshId("cited");
  readonly #cells = new CellController(this);

  constructor() {
    super();
    this.number = 0;
    this.context = NOWHERE;
    this.isShown = false;
    this.addEventListener("pointerenter", ({ pointerType }) => pointerType !== "touch" && this.#show());
    this.addEventListener("pointerleave", () => !this.contains(document.activeElement) && this.#hide());
    this.addEventListener("focusin", () => this.#show());
    this.addEventListener("focusout", () => !this.matches(":hover") && this.#hide());
  }

  protected override createRenderRoot(): HTMLElement {
    this.replaceChildren(); // the plain text from before this module was loaded
    return this;
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#hide();
  }

  protected override willUpdate(): void {
    const { citations } = this.context;
    this.#cells.observe(...(citations ? [citations] : []));
  }

  protected override render(): TemplateResult {
    const { citations, t } = this.context;
    const source = citations?.get()[this.number - 1];
    if (!citations || !source) return html`[${this.number}]`;
    const place = `${citations.id}-${this.number}`;
    const label = t("sourceNumber", { number: this.number, title: nameOf(source) });
    return html`<a
        href="#${place}"
        aria-label=${label}
        aria-describedby=${this.isShown ? this.#card : nothing}
        @click=${(event: MouseEvent) => this.#go(event, place)}
        >[${this.number}]</a
      >${this.isShown ? this.#drawCard(source) : nothing}`;
  }

  #drawCard(source: Source): TemplateResult {
    const host = linkTarget(source.url, this.context)?.host ?? "";
    return html`<span class="arp-cite-card" id=${this.#card} role="tooltip" popover="manual"
      ><span class="arp-cite-inner"
        ><strong dir="auto">${nameOf(source)}</strong>${host === "" || source.url === "" ? nothing : html`<span class="arp-host" dir="ltr">${host}</span>`}${
          source.excerpt === "" ? nothing : html`<span class="arp-excerpt" dir="auto">${source.excerpt}</span>`
        }</span
      ></span
    >`;
  }

  protected override updated(): void {
    const card = this.querySelector<HTMLElement>("[popover]");
    if (card === null) return;
    if (!card.matches(":popover-open")) card.showPopover();
    this.#place();
  }

  /**
   * Place the card below the link, or above it if there is no room below. It touches the link, so that the pointer can
   * move onto the card without closing it.
   */
  readonly #place = (): void => {
    const card = this.querySelector<HTMLElement>("[popover]");
    const link = this.querySelector("a");
    if (card === null || link === null) return;
    const at = link.getBoundingClientRect();
    const { width, height } = card.getBoundingClientRect();
    const isBelow = at.bottom + height < innerHeight || at.top < height;
    card.style.left = `${Math.max(MARGIN_PX, Math.min((at.left + at.right - width) / 2, innerWidth - width - MARGIN_PX))}px`;
    card.style.top = `${isBelow ? at.bottom : at.top - height}px`;
  };

  #show(): void {
    if (this.isShown || this.context.citations?.get()[this.number - 1] === undefined) return;
    this.isShown = true;
    document.addEventListener("keydown", this.#key, true);
    document.addEventListener("scroll", this.#place, { capture: true, passive: true });
  }

  #hide(): void {
    this.isShown = false;
    document.removeEventListener("keydown", this.#key, true);
    document.removeEventListener("scroll", this.#place, true);
  }

  /** Close the card with Escape. The key is stopped here, because elsewhere it would also close menus and dialogs. */
  readonly #key = (event: KeyboardEvent): void => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    this.#hide();
  };

  /** Scroll to the source. The browser's own navigation would change the address, which belongs to the host page. */
  #go(event: MouseEvent, place: string): void {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const item = (this.getRootNode() as Document | ShadowRoot).getElementById(place);
    if (item === null) return;
    event.preventDefault();
    this.#hide();
    item.scrollIntoView({ block: "nearest" });
    item.focus();
  }
}

/** Return the title of a source, or its address if it has none. */
export function nameOf({ title, url }: Source): string {
  return visible(title || url);
}

define("arp-cite", ArpCite);
