/** Width of the side panel: its bounds, and the border that the reader drags. All widths are CSS pixels. */

import type { Storage } from "@agent-rendering/core";

export const DEFAULT_PX = 384;
export const LEAST_PX = 256;
const MOST_PX = 960;

/** Smallest width of the conversation beside the panel. */
const CONVERSATION_PX = 400;

/** Width of the chat from which both fit. In a narrower chat the panel lies over the conversation. */
export const ADJACENT_PX = LEAST_PX + CONVERSATION_PX;

const STEP_PX = 16;

/** Return the largest width of the panel in a chat of this width. */
export function mostOf(room: number): number {
  return Math.max(LEAST_PX, Math.min(MOST_PX, Math.round(room) - CONVERSATION_PX));
}

/** Return a width, limited to the bounds in a chat of this width. */
export function bounded(width: number, room: number): number {
  return Math.round(Math.min(mostOf(room), Math.max(LEAST_PX, width)));
}

/** Return the stored width, or the default. */
export function readWidth(storage: Storage | null): number {
  try {
    return Number(storage?.getItem(Border.KEY)) || DEFAULT_PX;
  } catch {
    return DEFAULT_PX;
  }
}

/** The border between conversation and panel. It is moved with the pointer or the arrow keys. */
export class Border {
  /** Key of the width in the storage. */
  static readonly KEY = "arp.side-width";
  readonly #panel: HTMLElement;
  readonly #move: (width: number, isLast: boolean) => void;

  /** @param move Called with each new width; `isLast` is true when the reader has released the border. */
  constructor(panel: HTMLElement, move: (width: number, isLast: boolean) => void) {
    this.#panel = panel;
    this.#move = move;
  }

  get #isMirrored(): boolean {
    return getComputedStyle(this.#panel).direction === "rtl";
  }

  /** Handle a key: an arrow moves the border in its direction, Home makes the panel narrowest, End widest. */
  key(event: KeyboardEvent, width: number, room: number): void {
    const wider = this.#isMirrored ? "ArrowRight" : "ArrowLeft";
    const narrower = this.#isMirrored ? "ArrowLeft" : "ArrowRight";
    const next = { [wider]: width + STEP_PX, [narrower]: width - STEP_PX, Home: LEAST_PX, End: mostOf(room) }[
      event.key
    ];
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.#move(next, true);
  }

  readonly grab = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    const border = event.currentTarget as HTMLElement;
    const { left, right } = (border.parentElement as HTMLElement).getBoundingClientRect();
    const widthAt = (x: number) => (this.#isMirrored ? x - left : right - x);
    // Distance from the border to the pointer. Without it, the panel would jump by that distance at the first move.
    const off = right - left - widthAt(event.clientX);
    let last: number | null = null;
    const follow = ({ clientX }: PointerEvent) => this.#move((last = widthAt(clientX) + off), false);
    const release = () => {
      border.removeEventListener("pointermove", follow);
      border.removeEventListener("pointerup", release);
      border.removeEventListener("pointercancel", release);
      if (last !== null) this.#move(last, true);
    };
    border.setPointerCapture(event.pointerId);
    border.addEventListener("pointermove", follow);
    border.addEventListener("pointerup", release);
    border.addEventListener("pointercancel", release);
    event.preventDefault(); // otherwise dragging would select text
    border.focus({ preventScroll: true });
  };
}
