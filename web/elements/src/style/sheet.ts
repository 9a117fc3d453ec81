/** The style sheets of this package. They are added to the documents and shadow roots that contain its elements. */

import { VERSIONS } from "@agent-rendering/core";

import base from "./base.css?inline";
import shield from "./shield.css?inline";
import tokens from "./tokens.css?inline";

/**
 * Parts of a style sheet, in order. Of two rules with the same specificity, the one in the later part wins, whichever
 * part is loaded first.
 */
type Parts<Name extends string> = { [name in Name]: string };

/** A style sheet with parts that may be loaded later. */
export class Sheet<Name extends string> {
  readonly #parts: Parts<Name>;
  readonly #known = new WeakSet<Node>();
  #sheet: CSSStyleSheet | null = null;

  constructor(parts: Parts<Name>) {
    this.#parts = parts;
  }

  get text(): string {
    return Object.values(this.#parts).join("\n");
  }

  /** Add styles to a part, everywhere the sheet is adopted. Returns the text of the whole sheet. */
  add(name: Name, styles: string): string {
    this.#parts[name] += `\n${styles}`;
    this.#sheet?.replaceSync(this.text);
    return this.text;
  }

  /** Add the style sheet to a document or shadow root, once. */
  adopt(root: Node): void {
    if (this.#known.has(root) || !("adoptedStyleSheets" in root)) return;
    this.#known.add(root);
    if (this.#sheet === null) {
      this.#sheet = new CSSStyleSheet();
      this.#sheet.replaceSync(this.text);
    }
    (root as Document | ShadowRoot).adoptedStyleSheets.push(this.#sheet);
  }
}

/** Names of the elements that are blocks: those of the core components, and those around or inside of them. */
const BLOCKS = [...Object.keys(VERSIONS), "component", "own", "unknown", "sources", "prose", "code"];
const blocks = `:is(${BLOCKS.map((name) => `arp-${name}`).join()}).arp{display:block;min-width:0;font-size:1rem}`;

const ours = new Sheet({ frame: `${shield}\n${tokens}\n${blocks}\n${base}`, content: "", later: "", print: "" });

/** All styles that are loaded now, as text, for code that saves a page as a file. */
export let STYLES: string = ours.text;

/** Add styles that are loaded later, in every document and shadow root that has the style sheet. */
export function addStyles(styles: string, part: "content" | "later" | "print" = "later"): void {
  STYLES = ours.add(part, styles);
}

/** Add the style sheet to a document or shadow root, once. */
export function adoptStyles(root: Node): void {
  ours.adopt(root);
}
