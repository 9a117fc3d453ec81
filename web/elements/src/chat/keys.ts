/** The keyboard shortcuts of a chat. */

/** Shortcuts in the format of `aria-keyshortcuts`, with modifiers first: `Alt+ArrowUp`. `null` disables a shortcut. */
export interface ChatKeys {
  /** Stops the running turn. */
  readonly stop: string | null;
  /** Focuses the previous message. */
  readonly previous: string | null;
  /** Focuses the next message. */
  readonly next: string | null;
  /** Scrolls to the newest message. */
  readonly newest: string | null;
}

export const CHAT_KEYS: ChatKeys = {
  stop: "Escape",
  previous: "Alt+ArrowUp",
  next: "Alt+ArrowDown",
  newest: "Control+End",
};

const MODIFIERS = [
  ["Alt", "altKey"],
  ["Control", "ctrlKey"],
  ["Meta", "metaKey"],
  ["Shift", "shiftKey"],
] as const;
const FIELDS = "input, textarea, select, [contenteditable]:not([contenteditable=false])";

/**
 * Return whether a key press is a shortcut. It is not if its default action was prevented, while a word is being
 * composed, or in a field. The message box is an exception: there only keys that write a character are not shortcuts.
 */
export function isPressed(shortcut: string | null | undefined, event: KeyboardEvent): boolean {
  if (!shortcut || event.defaultPrevented || event.isComposing || !isMeant(shortcut, event)) return false;
  const field = event.target instanceof Element ? event.target.closest(FIELDS) : null;
  if (field === null) return true;
  const isSign = event.key.length === 1 && !event.altKey && !event.ctrlKey && !event.metaKey;
  return field.closest("arp-composer") !== null && !isSign;
}

function isMeant(shortcut: string, event: KeyboardEvent): boolean {
  const parts = shortcut.split("+");
  const key = parts.pop() || "+";
  const isSign = key.length === 1; // which characters need Shift depends on the keyboard, so Shift is ignored
  const isKey = isSign ? event.key.toLowerCase() === key.toLowerCase() : event.key === key;
  return (
    isKey && MODIFIERS.every(([name, held]) => (isSign && name === "Shift") || parts.includes(name) === event[held])
  );
}

/** Actions by shortcut. An action returns whether the browser must not act on the key as well. */
export type KeyActions = { readonly [Name in keyof ChatKeys]: () => boolean };

/** Run the action of a pressed key, if it is a shortcut of the chat. */
export function actOnKey(event: KeyboardEvent, keys: ChatKeys, actions: KeyActions): void {
  for (const name of Object.keys(actions) as (keyof ChatKeys)[])
    if (isPressed(keys[name], event) && actions[name]()) return event.preventDefault();
}

/** Return a shortcut as people read it; empty for `null`. */
export function keyName(shortcut: string | null): string {
  return (shortcut ?? "")
    .replace("Escape", "Esc")
    .replace("Control", "Ctrl")
    .replaceAll("Arrow", "")
    .replaceAll("+", " ");
}
