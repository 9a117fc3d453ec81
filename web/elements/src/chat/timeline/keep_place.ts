/** Keep the scroll position while messages are added above. */

import type { ReactiveElement } from "lit";

/** Return the distance from the scroll position to the end, in pixels. */
export function toEnd({ scrollHeight, scrollTop }: Element): number {
  return scrollHeight - scrollTop;
}

/** Wait until all messages of a chat are drawn, then restore the distance to the end, if `before` is known. */
export async function keepPlace(chat: ReactiveElement, scroller: Element, before: number | null): Promise<void> {
  await chat.updateComplete;
  await Promise.all(
    [...chat.querySelectorAll<ReactiveElement>("arp-message")].map((message) => message.updateComplete),
  );
  if (before !== null) scroller.scrollTop = scroller.scrollHeight - before;
}
