/** The text of a turn as it is drawn, in lines, for screen readers. */

import type { TurnState } from "@agent-rendering/core";

import type { ArpProse } from "../../markdown/prose.js";
import { plainTextOf } from "@agent-rendering/core/timeline";

/** Time between two looks whether the prose is drawn. */
const LOOK_MS = 100;
/** Number of looks after which the text is read as far as it is drawn. */
const MOST_LOOKS = 20;

/** Elements within a line. Every other element begins and ends a line. */
const INLINE = new Set(
  "a abbr arp-cite arp-math b bdi bdo cite code del dfn em i img ins kbd label mark math q s samp small span strong sub sup u var".split(
    " ",
  ),
);
/** Elements without text, and controls, whose text is not part of the answer. */
const SILENT = "[aria-hidden=true], [hidden], [popover], .arp-tools, .arp-code-head, button, svg, style, script";

/** Return the prose of a turn and the names of its authors, once it is drawn. Long prose takes several frames. */
export async function drawnText(chat: Element, turn: TurnState): Promise<string[]> {
  const place = `arp-message[data-turn="${CSS.escape(turn.id)}"]`;
  let said: Element[] = [];
  for (let look = 0; look < MOST_LOOKS; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    said = [...chat.querySelectorAll(`${place} :is(arp-prose, .arp-author > [dir])`)];
    if (said.every((one) => !(one as Partial<ArpProse>).busy)) break;
  }
  const lines = linesOf(said);
  // If nothing is drawn (the code of the message failed to load), the text of the turn is read instead.
  return lines.length > 0
    ? lines
    : plainTextOf(turn)
        .split("\n")
        .filter((line) => line.trim() !== "");
}

/** Return the text of elements as lines, one for each block. Cells of a table row are separated by semicolons. */
export function linesOf(elements: Iterable<Element>): string[] {
  const lines = [""];
  const write = (text: string) => (lines[lines.length - 1] += text);
  const walk = (node: Node, isCode: boolean): void => {
    if (node.nodeType === Node.TEXT_NODE) {
      const text = node.textContent ?? "";
      const [first = "", ...others] = isCode ? text.split("\n") : [text.replace(/\s+/g, " ")];
      write(first);
      lines.push(...others);
      return;
    }
    if (!(node instanceof Element) || node.matches(SILENT)) return;
    const name = node.localName;
    if (name === "img") return void write(node.getAttribute("alt") ?? "");
    if (name === "math") return void write((node.querySelector("annotation") ?? node).textContent ?? "");
    const isCell = name === "td" || name === "th";
    if (isCell && node.previousElementSibling !== null) write("; ");
    const isBlock = !isCell && !INLINE.has(name);
    if (isBlock) lines.push("");
    for (const child of node.childNodes) walk(child, isCode || name === "pre");
    if (isBlock) lines.push("");
  };
  for (const element of elements) walk(element, false);
  return lines.map((line) => line.replace(/\s+/g, " ").trim()).filter((line) => line !== "");
}
