/** Where a popup or an overlay is in the window. */

import type { Component, Wire } from "@agent-rendering/core";

/** From the edges of the window, and between a popup and what it is over. */
const MARGIN = 8;
/** In narrower windows a popup is a sheet at the lower edge. */
const NARROW_PX = 600;

interface Drawn extends HTMLElement {
  readonly component?: Component | null;
  rowOf?(number: number): HTMLElement | null;
}

/** What a popup is over: a row, or else the component; `null` if it does not show. */
export function anchorOf(around: ParentNode, { component, row }: Wire.SurfaceInfo): HTMLElement | null {
  if (component == null) return null;
  const drawn = [...around.querySelectorAll<Drawn>("[data-type]")].find(
    (element) => element.component?.id === component,
  );
  const over = row == null ? null : drawn?.rowOf?.(row);
  return over ?? drawn ?? null;
}

/** The distance from the left and from the top at which a box is inside the window, and as near to a place as that allows. */
export function inside(left: number, top: number, box: DOMRect, width: number, height: number): [number, number] {
  const within = (wanted: number, size: number, room: number) =>
    Math.max(MARGIN, Math.min(wanted, room - size - MARGIN));
  return [within(left, box.width, width), within(top, box.height, height)];
}

/**
 * Places a card.
 *
 * @param anchor What a popup is over.
 * @param around What an overlay is above.
 * @param offsets How much of each corner is taken by others; what this one takes is added.
 */
export function place(
  card: HTMLElement,
  info: Wire.SurfaceInfo,
  anchor: HTMLElement | null,
  around: HTMLElement,
  offsets: Map<string, number>,
): void {
  const isSheet = info.role === "popup" && innerWidth < NARROW_PX;
  card.dataset.layout = isSheet ? "sheet" : "free";
  if (isSheet) {
    card.style.removeProperty("left");
    card.style.removeProperty("top");
    return;
  }
  const box = card.getBoundingClientRect();
  const [left, top] =
    info.role === "popup" && anchor
      ? below(box, anchor.getBoundingClientRect())
      : corner(box, info.anchor ?? "center", around.getBoundingClientRect(), offsets);
  const [x, y] = inside(left, top, box, innerWidth, innerHeight);
  card.style.left = `${x}px`;
  card.style.top = `${y}px`;
}

/** Below what it is over, or above it where there is no room below. */
function below(box: DOMRect, over: DOMRect): [number, number] {
  const lower = over.bottom + MARGIN / 2;
  const hasRoom = lower + box.height + MARGIN <= innerHeight;
  const upper = over.top - box.height - MARGIN / 2;
  return [over.left + Math.min(24, over.width / 4), hasRoom || upper < MARGIN ? lower : upper];
}

function corner(box: DOMRect, anchor: string, around: DOMRect, offsets: Map<string, number>): [number, number] {
  const taken = offsets.get(anchor) ?? 0;
  offsets.set(anchor, taken + box.height + MARGIN);
  const isAtStart = anchor.endsWith("left");
  const isAtEnd = anchor.endsWith("right");
  const left = isAtStart
    ? around.left + 2 * MARGIN
    : isAtEnd
      ? around.right - box.width - 2 * MARGIN
      : around.left + (around.width - box.width) / 2;
  if (anchor.startsWith("top")) return [left, around.top + 2 * MARGIN + taken];
  if (anchor.startsWith("bottom")) return [left, around.bottom - box.height - 2 * MARGIN - taken];
  return [left, around.top + (around.height - box.height) / 2 + taken];
}
