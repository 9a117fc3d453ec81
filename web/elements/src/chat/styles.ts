/** The style sheet of the chat, which is added to each document or shadow root with a chat. */

import { adoptStyles, Sheet } from "../style/sheet.js";
import bubbles from "./message/bubbles.css?inline";
import chat from "./chat.css?inline";

const ours = new Sheet({ bubbles, message: "", chat, permissions: "" });

/** The chat's styles as text, to save a page as a file. Contains the styles of all parts that have been loaded. */
export let CHAT_STYLES: string = ours.text;

/** Add the styles of a part that is loaded later, in every place that has the chat's styles. */
export function addChatStyles(part: "message" | "permissions", styles: string): void {
  CHAT_STYLES = ours.add(part, styles);
}

/** Return a function that adds a style sheet to a document or shadow root, once to each. */
export function adopter(css: string): (root: Node) => void {
  const own = new Sheet({ css });
  return (root) => own.adopt(root);
}

/** Add the styles of components and of the chat to a document or shadow root, once to each. */
export function adoptChatStyles(root: Node): void {
  adoptStyles(root);
  ours.adopt(root);
}
