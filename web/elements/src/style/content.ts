/**
 * Styles of text, code and cards, and for printing. They are loaded with the first element that shows such content, so
 * that the chat itself starts sooner.
 */

import cards from "./cards.css?inline";
import code from "./code.css?inline";
import print from "./print.css?inline";
import prose from "./prose.css?inline";
import { addStyles } from "./sheet.js";

addStyles(`${prose}\n${code}\n${cards}`, "content");
addStyles(print, "print");
