/** Our style sheets. Each is added to the documents and shadow roots that show an element of ours. */

import { VERSIONS } from "@agent-rendering/core";

import base from "./base.css?inline";
import shield from "./shield.css?inline";
import tokens from "./tokens.css?inline";

/** Parts of a style sheet, in their order. Where two rules weigh the same the later part wins, whichever is loaded first. */
type Parts<Name extends string> = { [name in Name]: string };

/** A style sheet, of which some parts may be loaded later. */
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

  /** Adds styles to a part wherever the sheet is adopted; returns the text of the whole sheet. */
  add(name: Name, styles: string): string {
    this.#parts[name] += `\n${styles}`;
    this.#sheet?.replaceSync(this.text);
    return this.text;
  }

  /** Adds the style sheet to a document or shadow root, once. */
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

/** Elements that are a block of their own: one for each core component, and those that show something around or in it. */
const BLOCKS = [...Object.keys(VERSIONS), "component", "own", "unknown", "sources", "prose", "code"];
const blocks = `:is(${BLOCKS.map((name) => `arp-${name}`).join()}).arp{display:block;min-width:0;font-size:1rem}`;

const ours = new Sheet({ frame: `${shield}\n${tokens}\n${blocks}\n${base}`, content: "", later: "", print: "" });

/** Our styles as text, for anyone who writes a page as a file: those of all that has been shown. */
export let STYLES: string = ours.text;

/** Adds styles that are loaded later, in every document and shadow root that has ours. */
export function addStyles(styles: string, part: "content" | "later" | "print" = "later"): void {
  STYLES = ours.add(part, styles);
}

/** Adds our styles to a document or shadow root, once. */
export function adoptStyles(root: Node): void {
  ours.adopt(root);
}
