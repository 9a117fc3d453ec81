/** Reports at which sides of a box there is more to scroll to. */

/**
 * Keeps `data-more` of a frame up to date: `start`, `end`, both or nothing. `--_arp-bar` is what a scroll bar at
 * the end takes. The box is asked only after a layout or before anything has changed, so that asking lays nothing out.
 *
 * @returns Ends it.
 */
export function watchEdges(frame: HTMLElement, box: HTMLElement, content: Element): () => void {
  const look = (): void => {
    const { scrollLeft, scrollWidth, clientWidth, offsetWidth } = box;
    const gone = Math.abs(scrollLeft); // from right to left it counts below zero
    const more = [gone > 1 ? "start" : "", scrollWidth - clientWidth - gone > 1 ? "end" : ""].join(" ").trim();
    if (frame.dataset.more !== more) frame.dataset.more = more;
    const bar = `${offsetWidth - clientWidth}px`;
    if (frame.style.getPropertyValue("--_arp-bar") !== bar) frame.style.setProperty("--_arp-bar", bar);
  };
  const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(look);
  observer?.observe(box);
  observer?.observe(content);
  box.addEventListener("scroll", look, { passive: true });
  return () => {
    observer?.disconnect();
    box.removeEventListener("scroll", look);
  };
}
