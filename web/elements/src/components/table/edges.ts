/** Reports on which sides of a box there is more content to scroll to. */

/**
 * Keep the attribute `data-more` of a frame up to date (`start`, `end`, both, or empty), and the property `--_arp-bar`
 * (width of a scroll bar at the end). The box is measured only right after a layout or before a change, because
 * otherwise the browser would have to compute the layout once more for it.
 *
 * @returns A function that stops this.
 */
export function watchEdges(frame: HTMLElement, box: HTMLElement, content: Element): () => void {
  const look = (): void => {
    const { scrollLeft, scrollWidth, clientWidth, offsetWidth } = box;
    const gone = Math.abs(scrollLeft); // negative in right-to-left text
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
