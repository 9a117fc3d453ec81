/** Keyboard focus on messages. */

/** Focus the next or previous message. Return false if the focus belongs in the message box: after the last message. */
export function walk(chat: Element, step: -1 | 1): boolean {
  const messages = [...chat.querySelectorAll<HTMLElement>(".arp-log article")];
  const here = messages.findIndex((message) => message.contains(document.activeElement));
  const next = here < 0 ? (step < 0 ? messages.at(-1) : undefined) : messages[here + step];
  if (next === undefined) return step < 0;
  next.tabIndex = -1;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}
