/** What Enter does to a command that is typed. */

import { expect, test } from "vitest";
import { CommandList } from "../../src/chat/composer/command_list.js";

const COMMANDS = [
  { name: "help" },
  { name: "help-me" },
  { name: "export", hint: "csv or json" },
  { name: "mode", choices: [{ value: "ask" }, { value: "plan" }] },
];

/** Types a text and presses a key; returns what was picked, or `null` if the key is the box's. */
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
  "%s and %s: a command that is typed in full and has no choices is sent, all else is completed",
  (text, key, picked) => {
    expect(pressed(text, key)).toBe(picked);
  },
);
