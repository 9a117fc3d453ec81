/** The style sheet of the chat, given to each document or shadow root that shows one. */

import { adoptStyles, Sheet } from "../style/sheet.js";
import bubbles from "./message/bubbles.css?inline";
import chat from "./chat.css?inline";

const ours = new Sheet({ bubbles, message: "", chat, permissions: "" });

/** The chat's styles as text, for anyone who writes a page as a file: those of all that has been shown. */
export let CHAT_STYLES: string = ours.text;

/** Adds the styles of a part that is loaded later, wherever the chat's styles are. */
export function addChatStyles(part: "message" | "permissions", styles: string): void {
  CHAT_STYLES = ours.add(part, styles);
}

/** Returns what puts a style sheet into a document or shadow root, once. */
export function adopter(css: string): (root: Node) => void {
  const own = new Sheet({ css });
  return (root) => own.adopt(root);
}

/** Puts all our styles into a document or shadow root, once. */
export function adoptChatStyles(root: Node): void {
  adoptStyles(root);
  ours.adopt(root);
}
