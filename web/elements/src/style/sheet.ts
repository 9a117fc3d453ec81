/** Our one style sheet, given to each document or shadow root that shows an element of ours. */

import base from "./base.css?inline";
import cards from "./cards.css?inline";
import code from "./code.css?inline";
import print from "./print.css?inline";
import prose from "./prose.css?inline";
import shield from "./shield.css?inline";
import tokens from "./tokens.css?inline";

let sheet: CSSStyleSheet | null = null;
const known = new WeakSet<Node>();

/** Of components that are loaded with the first of their type. */
const later: string[] = [];

/** Our styles as text, for anyone who writes a page as a file: those of all that has been shown. */
export let STYLES: string = joined();

function joined(): string {
  return [shield, tokens, base, prose, code, cards, ...later, print].join("\n");
}

/** Adds the styles of a component that is loaded later, everywhere. */
export function addStyles(styles: string): void {
  later.push(styles);
  STYLES = joined();
  sheet?.replaceSync(STYLES);
}

/** Puts our styles into a document or shadow root, once. */
export function adoptStyles(root: Node): void {
  if (known.has(root) || !("adoptedStyleSheets" in root)) return;
  known.add(root);
  if (sheet === null) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLES);
  }
  (root as Document | ShadowRoot).adoptedStyleSheets.push(sheet);
}
