/** Keys in the list of commands. */

import { expect, test } from "vitest";
import { CommandList } from "../../src/chat/composer/command_list.js";

const COMMANDS = [
  { name: "help" },
  { name: "help-me" },
  { name: "export", hint: "csv or json" },
  { name: "mode", choices: [{ value: "ask" }, { value: "plan" }] },
];

/** Type a text and press a key. Return the picked text, or `null` if the key is left to the message box. */
function pressed(text: string, key: string): string | null {
  const list = new CommandList(() => {});
  list.commands = COMMANDS;
  list.look(text, text.length);
  let picked = "";
  return list.key(new KeyboardEvent("keydown", { key }), (chosen) => (picked = chosen)) ? picked : null;
}

test.each([
  ["/help", "Enter", null],
  ["/HELP", "Enter", null],
  ["/help-me", "Enter", null],
  ["/export", "Enter", null],
  ["/hel", "Enter", "/help"],
  ["/help", "Tab", "/help"],
  ["/mode", "Enter", "/mode "],
  ["/mode pl", "Enter", "/mode plan"],
  ["/mode plan", "Enter", null],
])(
  "%s and %s: a command that is typed in full and has no choices is sent, any other text is completed",
  (text, key, picked) => {
    expect(pressed(text, key)).toBe(picked);
  },
);
