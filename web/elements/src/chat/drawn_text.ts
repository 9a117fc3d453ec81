/** What a turn says, as it shows: for those who have it read aloud. */

import type { TurnState } from "@agent-rendering/core";

import type { ArpProse } from "../markdown/prose.js";
import { plainTextOf } from "./sections.js";

const LOOK_MS = 100;
const MOST_LOOKS = 20;

/** The text of a turn's prose once it is drawn: long ones are drawn over several frames. */
export async function drawnText(chat: Element, turn: TurnState): Promise<string> {
  let prose: ArpProse[] = [];
  for (let look = 0; look < MOST_LOOKS; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    prose = [...chat.querySelectorAll<ArpProse>(`arp-message[data-turn="${CSS.escape(turn.id)}"] arp-prose`)];
    if (prose.every(({ busy }) => !busy)) break;
  }
  return prose.map(({ textContent }) => textContent ?? "").join("\n") || plainTextOf(turn);
}
