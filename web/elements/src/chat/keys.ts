/** The keys of a chat: which they are, and whether one of them was pressed. */

/**
 * What keys do. A key is written as in `aria-keyshortcuts`, `Alt+ArrowUp` say, with modifiers before it;
 * `null` takes the key away.
 */
export interface ChatKeys {
  /** Stops what runs. */
  readonly stop: string | null;
  /** Go from message to message. */
  readonly previous: string | null;
  readonly next: string | null;
  /** Goes to the newest message. */
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
 * Whether a key was pressed as a shortcut. Not if somebody has taken it already, a word is being
 * composed, or it was pressed in a field: there it writes. Of the message box only signs do.
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
  const isSign = key.length === 1; // what Shift makes of a key differs from keyboard to keyboard
  const isKey = isSign ? event.key.toLowerCase() === key.toLowerCase() : event.key === key;
  return (
    isKey && MODIFIERS.every(([name, held]) => (isSign && name === "Shift") || parts.includes(name) === event[held])
  );
}

/** What to do for each key of a chat; returns whether the browser must not act on the key too. */
export type KeyActions = { readonly [Name in keyof ChatKeys]: () => boolean };

/** Do what a pressed key stands for, if it is one of the chat's. */
export function actOnKey(event: KeyboardEvent, keys: ChatKeys, actions: KeyActions): void {
  for (const name of Object.keys(actions) as (keyof ChatKeys)[])
    if (isPressed(keys[name], event) && actions[name]()) return event.preventDefault();
}

/** A key as people read it; empty for none. */
export function keyName(shortcut: string | null): string {
  return (shortcut ?? "")
    .replace("Escape", "Esc")
    .replace("Control", "Ctrl")
    .replaceAll("Arrow", "")
    .replaceAll("+", " ");
}
