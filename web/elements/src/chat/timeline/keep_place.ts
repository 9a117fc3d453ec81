/** What is read stays where it is while messages come above it. */

import type { ReactiveElement } from "lit";

/** How far the end is from what is read. */
export function toEnd({ scrollHeight, scrollTop }: Element): number {
  return scrollHeight - scrollTop;
}

/** Waits until all messages of a chat are drawn; what is read is then as far from the end as it was, where that is known. */
export async function keepPlace(chat: ReactiveElement, scroller: Element, before: number | null): Promise<void> {
  await chat.updateComplete;
  await Promise.all(
    [...chat.querySelectorAll<ReactiveElement>("arp-message")].map((message) => message.updateComplete),
  );
  if (before !== null) scroller.scrollTop = scroller.scrollHeight - before;
}
