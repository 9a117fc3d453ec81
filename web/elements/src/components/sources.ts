/** The sources of an answer as a numbered list. `[2]` in the text of the same turn links to the second one. */

import type { JsonObject } from "@agent-rendering/core";
import { html, nothing } from "lit";
import { sourcesOf, type Source } from "../base/citations.js";
import { ComponentElement } from "../base/component_element.js";
import { define } from "../base/element.js";
import { leadsAway, linkTarget } from "../base/url.js";
import { freshId } from "../base/values.js";
import { nameOf } from "./cite.js";
import { addStyles } from "../style/sheet.js";
import styles from "../style/sources.css?inline";

/** `<arp-sources>`: links with their hosts, and the relevant passages. */
export class ArpSources extends ComponentElement {
  readonly #id = freshId("sources");

  protected override draw(props: JsonObject): unknown {
    const place = this.context.citations?.id ?? this.#id;
    return html`<section class="arp-card arp-sources" role="group" aria-labelledby=${this.#id}>
      <h3 class="arp-title" id=${this.#id}>${this.t("sources")}</h3>
      <ol>
        ${sourcesOf(props).map(
          (source, at) => html`<li id="${place}-${at + 1}" tabindex="-1" dir="auto">
            ${this.#name(source)}${source.excerpt === "" ? nothing : html`<p class="arp-note arp-excerpt" dir="auto">${source.excerpt}</p>`}
          </li>`,
        )}
      </ol>
    </section>`;
  }

  /** Return the name of a source, as a link if its address may be followed. */
  #name(source: Source): unknown {
    const target = source.url === "" ? null : linkTarget(source.url, this.context);
    if (target === null) return html`<cite>${nameOf(source)}</cite>`;
    const isAway = leadsAway(target);
    return html`<a
        class="arp-link"
        href=${target.href}
        target=${isAway ? "_blank" : nothing}
        rel="noopener noreferrer nofollow"
        title=${isAway ? this.t("opensHost", { host: target.host }) : nothing}
        ><cite>${nameOf(source)}</cite></a
      >${target.host === "" ? nothing : html` <bdi class="arp-host" dir="ltr">(${target.host})</bdi>`}`;
  }
}

addStyles(styles);
define("arp-sources", ArpSources);
