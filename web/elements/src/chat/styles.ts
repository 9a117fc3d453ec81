/** The style sheet of the chat, given to each document or shadow root that shows one. */

import { adoptStyles } from "../style/sheet.js";
import chat from "./chat.css?inline";
import message from "./message.css?inline";

/** The chat's styles as text, for anyone who writes a page as a file. */
export const CHAT_STYLES = `${message}\n${chat}`;

let sheet: CSSStyleSheet | null = null;
const known = new WeakSet<Node>();

/** Returns what puts a style sheet into a document or shadow root, once. */
export function adopter(css: string): (root: Node) => void {
  let own: CSSStyleSheet | null = null;
  return (root) => {
    if (own === null) {
      own = new CSSStyleSheet();
      own.replaceSync(css);
    }
    const { adoptedStyleSheets } = root as unknown as DocumentOrShadowRoot;
    if (!adoptedStyleSheets.includes(own)) adoptedStyleSheets.push(own);
  };
}

/** Puts all our styles into a document or shadow root, once. */
export function adoptChatStyles(root: Node): void {
  adoptStyles(root);
  if (known.has(root) || !("adoptedStyleSheets" in root)) return;
  known.add(root);
  if (sheet === null) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(CHAT_STYLES);
  }
  (root as unknown as DocumentOrShadowRoot).adoptedStyleSheets.push(sheet);
}
