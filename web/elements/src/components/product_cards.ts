/** Products as cards side by side. */

import type { JsonObject } from "@agent-rendering/core";
import { html, nothing, type PropertyDeclarations } from "lit";
import { ComponentElement } from "../base/component_element.js";
import { define } from "../base/element.js";
import { icon } from "../base/icons.js";
import { leadsAway, linkTarget } from "../base/url.js";
import { freshId, objects, text } from "../base/values.js";
import { addStyles } from "../style/sheet.js";
import styles from "../style/products.css?inline";

/** Number of cards from which a search field is shown. */
const SEARCHABLE = 7;

/** `<arp-product-cards>`: cards with checked links, and with pictures that may need consent. */
export class ArpProductCards extends ComponentElement {
  static override properties: PropertyDeclarations = { wanted: { state: true } };

  declare wanted: string;
  readonly #id = freshId("products");

  constructor() {
    super();
    this.wanted = "";
  }

  protected override draw({ title, cards }: JsonObject): unknown {
    const { t } = this;
    const all = objects(cards);
    const words = this.wanted.toLocaleLowerCase(t.locale).split(/\s+/).filter(Boolean);
    const shown = all.filter((card) => {
      const searchable = [card.name, card.brand, card.description, card.badge, card.price]
        .map(text)
        .join(" ")
        .toLocaleLowerCase(t.locale);
      return words.every((word) => searchable.includes(word));
    });
    const heading = text(title);
    return html`<section class="arp-products" role="group" aria-labelledby=${heading ? this.#id : nothing} aria-label=${heading ? nothing : t("products")}>
      ${
        heading || all.length >= SEARCHABLE
          ? html`<header>
        ${heading ? html`<h3 class="arp-title" id=${this.#id} dir="auto">${heading}</h3>` : nothing}
        ${
          all.length >= SEARCHABLE
            ? html`<label class="arp-search">${icon("search")}<span class="arp-hidden">${t("filter")}</span>
          <input class="arp-input" type="search" dir="auto" placeholder=${t("filter")} .value=${this.wanted} @input=${this.#search} /></label>`
            : nothing
        }
      </header>`
          : nothing
      }
      <p class="arp-hidden" role="status">${this.wanted === "" ? nothing : t("found", { count: shown.length, all: all.length })}</p>
      <ul class="arp-product-list">${shown.map((card) => this.#card(card))}</ul>
    </section>`;
  }

  readonly #search = (event: Event): void => {
    this.wanted = (event.target as HTMLInputElement).value;
  };

  #card({ name, price, image, brand, description, badge, url }: JsonObject): unknown {
    const { t } = this;
    const target = linkTarget(text(url), this.context);
    const isAway = target !== null && leadsAway(target);
    const label = text(name);
    const cost =
      typeof price === "number" ? t.number(price, { minimumFractionDigits: price % 1 === 0 ? 0 : 2 }) : text(price);
    return html`<li class="arp-card arp-product">
      ${text(image) === "" ? nothing : html`<arp-picture .source=${text(image)} .alt=${label} .inline=${true} .fills=${true} .context=${this.context}></arp-picture>`}
      <div class="arp-product-text">
        ${text(badge) === "" ? nothing : html`<span class="arp-badge" dir="auto">${text(badge)}</span>`}
        ${text(brand) === "" ? nothing : html`<span class="arp-note" dir="auto">${text(brand)}</span>`}
        <h4 class="arp-title" dir="auto">${
          target === null || text(url) === ""
            ? label
            : html`<a
          class="arp-link" href=${target.href} target=${isAway ? "_blank" : nothing} rel="noopener noreferrer nofollow" title=${isAway ? t("opensHost", { host: target.host }) : nothing}
        >${label}</a>`
        }</h4>
        ${text(description) === "" ? nothing : html`<p class="arp-note" dir="auto">${text(description)}</p>`}
        ${cost === "" ? nothing : html`<p class="arp-price" dir="auto">${cost}</p>`}
        ${isAway && text(url) !== "" ? html`<p class="arp-note arp-host">${icon("open")}${target.host}</p>` : nothing}
      </div>
    </li>`;
  }
}

addStyles(styles);
define("arp-product-cards", ArpProductCards);
