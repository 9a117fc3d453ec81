/** What a turn says, as it shows: for those who have it read aloud. */

import type { TurnState } from "@agent-rendering/core";

import type { ArpProse } from "../markdown/prose.js";
import { plainTextOf } from "./sections.js";

const LOOK_MS = 100;
const MOST_LOOKS = 20;

/** The text of a turn's prose, with the names of its authors, once it is drawn: long ones are drawn over several frames. */
export async function drawnText(chat: Element, turn: TurnState): Promise<string> {
  const place = `arp-message[data-turn="${CSS.escape(turn.id)}"]`;
  let said: Element[] = [];
  for (let look = 0; look < MOST_LOOKS; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    said = [...chat.querySelectorAll(`${place} :is(arp-prose, .arp-author > [dir])`)];
    if (said.every((one) => !(one as Partial<ArpProse>).busy)) break;
  }
  return said.map(({ textContent }) => textContent ?? "").join("\n") || plainTextOf(turn);
}
