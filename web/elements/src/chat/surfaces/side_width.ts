/** How wide the side panel is: its bounds, and the border by which the reader moves it. Widths are CSS pixels. */

import type { Storage } from "@agent-rendering/core";

export const DEFAULT_PX = 384;
export const LEAST_PX = 256;
const MOST_PX = 960;

/** What the conversation has at least beside it. */
const CONVERSATION_PX = 400;

/** A chat that is narrower has no room for both: the panel lies over the conversation. */
export const ADJACENT_PX = LEAST_PX + CONVERSATION_PX;

const STEP_PX = 16;

/** The widest that a panel may be in a chat of this width. */
export function mostOf(room: number): number {
  return Math.max(LEAST_PX, Math.min(MOST_PX, Math.round(room) - CONVERSATION_PX));
}

/** A width within its bounds. */
export function bounded(width: number, room: number): number {
  return Math.round(Math.min(mostOf(room), Math.max(LEAST_PX, width)));
}

/** The width that was kept. */
export function readWidth(storage: Storage | null): number {
  try {
    return Number(storage?.getItem(Border.KEY)) || DEFAULT_PX;
  } catch {
    return DEFAULT_PX;
  }
}

/** The border between conversation and panel: it is dragged, or moved by the arrow keys. */
export class Border {
  /** Where the width is kept. */
  static readonly KEY = "arp.side-width";
  readonly #panel: HTMLElement;
  readonly #move: (width: number, isLast: boolean) => void;

  /** `move` gets each new width; `isLast` says that the reader let go. */
  constructor(panel: HTMLElement, move: (width: number, isLast: boolean) => void) {
    this.#panel = panel;
    this.#move = move;
  }

  get #isMirrored(): boolean {
    return getComputedStyle(this.#panel).direction === "rtl";
  }

  /** An arrow moves the border to where it points; Home makes the panel narrowest, End widest. */
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
    // The border stays under the pointer where it was grabbed.
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
    event.preventDefault(); // selects nothing
    border.focus({ preventScroll: true });
  };
}
