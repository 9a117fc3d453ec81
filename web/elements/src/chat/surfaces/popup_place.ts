/** Positions of popups and overlays in the window. */

import type { Component, Wire } from "@agent-rendering/core";

/** Smallest distance to the edges of the window, in pixels. */
const MARGIN = 8;
/** Width of the window below which a popup is a sheet at the lower edge. */
const NARROW_PX = 600;

/** An element that draws a component; a table also finds its rows. */
interface Drawn extends HTMLElement {
  readonly component?: Component | null;
  rowOf?(number: number): HTMLElement | null;
}

/** Return the element that a popup lies over: the row, or else the component; `null` if neither is drawn. */
export function anchorOf(around: ParentNode, { component, row }: Wire.SurfaceInfo): HTMLElement | null {
  if (component == null) return null;
  const drawn = [...around.querySelectorAll<Drawn>("[data-type]")].find(
    (element) => element.component?.id === component,
  );
  const over = row == null ? null : drawn?.rowOf?.(row);
  return over ?? drawn ?? null;
}

/** Return the position nearest to `left` and `top` at which a box is inside a window of this width and height. */
export function inside(left: number, top: number, box: DOMRect, width: number, height: number): [number, number] {
  const within = (wanted: number, size: number, room: number) =>
    Math.max(MARGIN, Math.min(wanted, room - size - MARGIN));
  return [within(left, box.width, width), within(top, box.height, height)];
}

/**
 * Set the position of a card.
 *
 * @param anchor Element that a popup lies over.
 * @param around Element that an overlay lies above.
 * @param offsets Height that other overlays take in each corner; the height of this one is added.
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

/** Return a position below an element, or above it if there is no space below. */
function below(box: DOMRect, over: DOMRect): [number, number] {
  const lower = over.bottom + MARGIN / 2;
  const hasRoom = lower + box.height + MARGIN <= innerHeight;
  const upper = over.top - box.height - MARGIN / 2;
  return [over.left + Math.min(24, over.width / 4), hasRoom || upper < MARGIN ? lower : upper];
}

/** Return a position in a corner, at an edge or in the middle of an element, after the overlays that are there. */
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
