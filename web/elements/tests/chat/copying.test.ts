/** W32, W4: copying a message, with and without a clipboard. */

import type { TurnState } from "@agent-rendering/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { copyMessage, copyText } from "../../src/chat/message/copying.js";

const TURN: TurnState = {
  id: "t",
  status: "completed",
  position: null,
  inputs: [],
  output: [
    { id: "t/1", type: "text", props: { content: "Some **bold** words.", format: "markdown" } },
    { id: "c", type: "table", props: { headers: ["a", "b"], rows: [["1", "2"]] } },
    { id: "t/2", type: "text", props: { content: "And the end.", format: "markdown" } },
  ],
  tools: [],
  thinking: "",
  errors: [],
  marks: [],
  permissions: [],
  usage: null,
  final: true,
};

/** A fake item of the clipboard. */
class Item {
  readonly parts: Record<string, Blob>;
  constructor(parts: Record<string, Blob>) {
    this.parts = parts;
  }
}

let written: Item[];
let texts: string[];
let commands: string[];

/** Install a clipboard whose methods work or reject. */
function clipboard({ write = true, writeText = true }: { write?: boolean; writeText?: boolean }): void {
  const refused = new DOMException("no", "NotAllowedError");
  vi.stubGlobal("navigator", {
    clipboard: {
      write: async ([item]: Item[]) => {
        if (!write) throw refused;
        written.push(item as Item);
      },
      writeText: async (text: string) => {
        if (!writeText) throw refused;
        texts.push(text);
      },
    },
  });
}

/** Install the old command `copy`, which copies the selection. */
function command(answer: boolean | Error): void {
  document.execCommand = (name: string) => {
    if (answer instanceof Error) throw answer;
    const box = document.querySelector("textarea:last-of-type") as HTMLTextAreaElement | null;
    commands.push(`${name} ${box?.value}`);
    return answer;
  };
}

beforeEach(() => {
  [written, texts, commands] = [[], [], []];
  document.body.replaceChildren();
  vi.stubGlobal("ClipboardItem", Item);
  command(false);
});
afterEach(() => vi.unstubAllGlobals());

const MARKDOWN = "Some **bold** words.\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nAnd the end.";

/** Return a drawn answer with its buttons. */
function shown(): HTMLElement {
  const reply = document.createElement("article");
  const add = (tag: string, className: string, text: string) =>
    reply.append(Object.assign(document.createElement(tag), { className, textContent: text }));
  add("h2", "arp-hidden", "Agent said");
  add("strong", "", "bold");
  add("button", "", "Copy");
  add("div", "arp-activity", "look");
  add("p", "arp-doing", "Again");
  return reply;
}

test("W32 a message is copied as Markdown and as rich text, without its buttons", async () => {
  clipboard({});
  const reply = shown();
  expect(await copyMessage(TURN, [reply])).toBe(true);
  const parts = written[0]?.parts ?? {};
  expect(await parts["text/plain"]?.text()).toBe(MARKDOWN);
  expect(await parts["text/html"]?.text()).toBe('<strong class="">bold</strong>');
  expect(reply.childElementCount).toBe(5); // the drawn answer is unchanged
});

test("W32 if the clipboard refuses items, the Markdown is copied as text", async () => {
  clipboard({ write: false });
  expect(await copyMessage(TURN, [])).toBe(true);
  expect(texts).toEqual([MARKDOWN]);
});

test("W4 W32 without a clipboard the old command copies the message, and leaves nothing in the page", async () => {
  vi.stubGlobal("navigator", {});
  command(true);
  const button = document.createElement("button");
  document.body.append(button);
  button.focus();
  expect(await copyMessage(TURN, [])).toBe(true);
  expect(commands).toEqual([`copy ${MARKDOWN}`]);
  expect([document.querySelector("textarea"), document.activeElement === button]).toEqual([null, true]);
});

test.each([
  ["says no", false],
  ["throws", new Error("forbidden")],
])("W32 if the old command %s too, the failure is reported", async (_how, answer) => {
  clipboard({ write: false, writeText: false });
  command(answer);
  expect(await copyText("some")).toBe(false);
  expect(document.querySelector("textarea")).toBeNull();
});
