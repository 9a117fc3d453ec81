/** Formulas as MathML. The library for this is loaded with the first formula. */

import { html, type PropertyDeclarations } from "lit";
import { ArpElement, define } from "../base/element.js";
import "../style/content.js";

type Render = (source: string, place: HTMLElement, options: object) => void;

let loaded: Render | null = null;
let loading: Promise<Render> | null = null;
const LONGEST = 5_000;

/** Load the library, once. */
async function renderer(): Promise<Render> {
  loading ??= import("temml").then(
    ({ default: temml }) => (loaded = (source, place, options) => temml.render(source, place, options)),
  );
  return loading;
}

/** `<arp-math>`: a formula. It shows the source until the library is loaded, and if the source is not a formula. */
export class ArpMath extends ArpElement {
  static override properties: PropertyDeclarations = { source: { attribute: false }, display: { attribute: false } };

  declare source: string;
  /** Whether it is a display formula, on a line of its own. */
  declare display: boolean;

  constructor() {
    super();
    this.source = "";
    this.display = false;
  }

  protected override render(): unknown {
    this.toggleAttribute("data-display", this.display);
    const formula = this.#formula();
    return formula ?? html`<code dir="ltr">${this.source}</code>`;
  }

  #formula(): Node | null {
    if (this.source.length > LONGEST) return null;
    if (loaded === null) {
      void renderer().then(
        () => this.requestUpdate(),
        () => undefined,
      ); // if loading fails, the source stays
      return null;
    }
    try {
      const place = document.createElement("span");
      // maxExpand and maxSize limit macros and sizes: without them, a short formula could freeze or cover the page.
      // trust: false leaves out links and raw attributes.
      loaded(this.source, place, {
        displayMode: this.display,
        throwOnError: true,
        trust: false,
        annotate: true,
        maxExpand: 200,
        maxSize: [20, 50],
      });
      return place;
    } catch {
      return null;
    }
  }
}

define("arp-math", ArpMath);
