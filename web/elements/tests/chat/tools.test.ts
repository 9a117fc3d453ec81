/** Arguments and results of tool calls, none of which are trusted. */

import type { Json, ToolRun } from "@agent-rendering/core";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { message } from "../../../core/tests/fakes.js";
import type { ArpChat } from "../../src/chat/chat.js";
import { turnsOf } from "../../../core/src/chat/history_turns.js";
import { codeLanguage } from "../../src/chat/message/tool_code.js";
import { ArpToolDetail } from "../../src/chat/message/tool_detail.js";
import { noting, ready, words } from "../context.js";
import { entered, left, report } from "./stage.js";

const FILE = `/_api/blobs/scw/${"0a".repeat(32)}/read_log.txt`;

async function detail(run: Partial<ToolRun>): Promise<HTMLElement> {
  const place = document.createElement("div");
  const shown = new ArpToolDetail();
  shown.run = { callId: "c", tool: "look", args: "{}", ok: true, error: null, ...run };
  shown.context = noting().context;
  place.append(shown);
  document.body.append(place);
  await ready(place);
  return shown;
}

const args = (value: Json, tool = "look") => detail({ tool, args: JSON.stringify(value) });
const rows = (shown: Element) =>
  [...shown.querySelectorAll("dl > div")].map((row) => [
    words(row.querySelector("dt")),
    (row.querySelector("dd pre") ?? row.querySelector("dd"))?.textContent?.trim(),
  ]);
const codes = (shown: Element) =>
  [...shown.querySelectorAll("arp-code")].map((code) => [
    (code as HTMLElement & { language: string }).language,
    code.querySelector("pre")?.textContent?.trimEnd(),
  ]);

afterEach(() => document.body.replaceChildren());

describe("W35 arguments", () => {
  test("are shown as names and values, by their type", async () => {
    const shown = await args({ where: "here", "": "", depth: 2, deep: true, none: null, list: [], nested: { a: [1] } });
    expect(rows(shown)).toEqual([
      ["where", "here"],
      ["", '""'],
      ["depth", "2"],
      ["deep", "true"],
      ["none", "null"],
      ["list", "[]"],
      ["nested", '{\n  "a": [\n    1\n  ]\n}'],
    ]);
    expect(words(shown.querySelector(".arp-caption"))).toBe("Arguments");
  });

  test("with several lines keep them, at any depth, without escapes of JSON", async () => {
    const shown = await args({ steps: [{ sql: "SELECT 1\r\nFROM a" }, { text: "one\ntwo" }] });
    expect(codes(shown)).toEqual([
      ["sql", "SELECT 1\nFROM a"],
      ["", "one\ntwo"],
    ]);
    expect(shown.textContent).not.toContain("\\n");
  });

  test("that are not an object are shown as they are, and empty arguments are not shown", async () => {
    expect((await detail({ args: "not {json" })).querySelector("pre")?.textContent).toBe("not {json");
    expect((await args(["a", 1])).querySelector("pre")?.textContent).toBe('[\n  "a",\n  1\n]');
    expect((await args("a\nb")).querySelector("pre")?.textContent).toBe("a\nb");
    expect((await detail({ args: "12345678901234567890" })).querySelector("pre")?.textContent).toBe(
      "12345678901234567890",
    );
    for (const none of ["", " ", "{}", "[]", "null"]) expect(words(await detail({ args: none }))).toBe("");
  });

  test("of great length are in a box that scrolls", async () => {
    const pre = (await args({ text: "a ".repeat(5000) })).querySelector("dd > pre");
    expect([pre?.textContent?.length, pre?.getAttribute("tabindex"), pre?.getAttribute("aria-label")]).toEqual([
      10_000,
      "0",
      "text",
    ]);
  });

  test("that are nested too deeply are shown as they are", async () => {
    for (const levels of [200, 50_000]) {
      const deep = `{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`;
      expect((await detail({ args: deep })).querySelector("pre")?.textContent).toBe(deep);
    }
  });

  test("with many entries are shown as JSON", async () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`k${at}`, at]));
    const shown = await args(many);
    expect(shown.querySelectorAll("*").length).toBeLessThan(10);
    expect(JSON.parse(shown.querySelector("pre")?.textContent ?? "")).toEqual(many);
  });

  test("run nothing and hide no deceptive character, in values and in names", async () => {
    const shown = await detail({
      args: '{"a\\u202e<b>":"<img src=x>\\u200b","__proto__":{"x":"\\u202e"},"code":"a\\u202eb"}',
      result: '[{"\\u202e":"\\u2066"}]',
    });
    expect(shown.querySelector("img, b")).toBeNull();
    expect(shown.textContent).not.toMatch(/[\u202e\u200b\u2066]/);
    expect(rows(shown)[0]).toEqual(["a⟨U+202E⟩<b>", "<img src=x>⟨U+200B⟩"]);
    expect(codes(shown)).toEqual([["", "a⟨U+202E⟩b"]]);
  });
});

test.each<[name: string, said: string, siblings: { [name: string]: string }, tool: string, language: string | null]>([
  ["sql", "SELECT 1", {}, "t", "sql"],
  ["query", "select a from b", {}, "t", "sql"],
  ["query", "rain in Oslo", {}, "t", null],
  ["command", "ls -l", {}, "t", "bash"],
  ["code", "x = 1", { language: "Python" }, "t", "Python"],
  ["code", "x = 1", { language: "not a language <b>" }, "run_python", "python"],
  ["code", "x = 1", {}, "t", ""],
  ["script", "echo", {}, "bash", "bash"],
  ["text", "one\ntwo", {}, "t", ""],
  ["text", "WITH a AS (SELECT 1)\nSELECT * FROM a", {}, "t", "sql"],
  ["text", "one line\n", {}, "t", null],
  ["code", "", {}, "t", null],
  ["constructor", "x", {}, "t", null],
])("the argument %s with the text %j has its language as code", (name, sent, siblings, tool, language) => {
  expect(codeLanguage(name, sent, siblings, tool)).toBe(language);
});

describe("W35 results", () => {
  test("a list of flat objects is a table, and any other list is JSON", async () => {
    const shown = await detail({
      result: JSON.stringify([
        { city: "Oslo", people: 709 },
        { city: "Bergen", old: null },
      ]),
    });
    expect([...shown.querySelectorAll("tr")].map((row) => [...row.children].map((cell) => cell.textContent))).toEqual([
      ["city", "people", "old"],
      ["Oslo", "709", ""],
      ["Bergen", "", ""],
    ]);
    for (const other of [[{ a: { b: 1 } }], [{ a: 1 }, 2], [1, 2], [{}], [{ a: "x\ny" }]]) {
      const plain = await detail({ result: JSON.stringify(other) });
      expect(plain.querySelector("table")).toBeNull();
      expect(plain.querySelector("pre")?.textContent).toBe(JSON.stringify(other, null, 2));
    }
  });

  test("an object is shown as names and values, and a text or a result that was cut as it is", async () => {
    expect(rows(await detail({ result: '{"a":1}' }))).toEqual([["a", "1"]]);
    const text = await detail({ result: "one\r\n  two\u202e" });
    expect(text.querySelector("pre")?.textContent).toBe("one\n  two⟨U+202E⟩");
    expect(words(text.querySelector(".arp-caption"))).toBe("Result");
    expect((await detail({ result: '{"a":"x…' })).querySelector("pre")?.textContent).toBe('{"a":"x…');
    expect(words(await detail({ result: "" }))).toBe("");
  });

  const OUTPUT =
    "\u001b[31mred\u001b[0m 10%\r100%\n\u001b[2K\u001b[1G\u001b[?25lspinner\r\u001b[Kok\n\u001b]8;;https://example.org\u001b\\link\u001b]8;;\u001b\\";

  test("with control codes are shown as in a terminal: in texts, values, JSON and tables", async () => {
    expect((await detail({ result: OUTPUT })).querySelector("pre")?.textContent).toBe("100%\nok\nlink");
    expect(rows(await detail({ result: JSON.stringify({ out: "\u001b[1mok\u001b[0m" }) }))).toEqual([["out", "ok"]]);
    const nested = await detail({ result: JSON.stringify([{ out: { text: "1%\r\u001b[32m2%" } }]) });
    expect(JSON.parse(nested.querySelector("pre")?.textContent ?? "")).toEqual([{ out: { text: "2%" } }]);
    expect((await detail({ result: JSON.stringify([{ out: "\u001b[1mok" }]) })).querySelector("td")?.textContent).toBe(
      "ok",
    );
  });

  test("alone have their control codes applied: arguments show all their characters", async () => {
    const shown = await args({ command: "rm -rf /\recho hi", note: "a\u001b[2Kb" });
    expect(codes(shown)).toEqual([["bash", "rm -rf /\necho hi"]]);
    expect(rows(shown)).toContainEqual(["note", "a⟨U+001B⟩[2Kb"]);
  });

  test("the whole result is linked if it is a file of the server, and no other address is ever linked", async () => {
    const link = (await detail({ result: "x…", resultRef: FILE })).querySelector("a");
    expect(link?.textContent).toBe("Whole result");
    expect(new URL(link?.href ?? "").pathname).toBe(FILE);
    expect(link?.hasAttribute("download")).toBe(true);
    for (const other of [
      "javascript:alert(1)",
      "/_api/chats/x",
      `${FILE}?x=1`,
      `${FILE}/../../..`,
      "/_api/blobs/cookie",
    ]) {
      expect((await detail({ result: "x…", resultRef: other })).querySelector("a")).toBeNull();
    }
  });

  test("values of any type in an imported file are shown", async () => {
    const shown = await detail({ args: { a: 1 } as never, result: ["x"] as never, resultRef: 7 as never });
    expect(shown.querySelectorAll("pre, dl")).toHaveLength(2);
    expect(shown.querySelector("a")).toBeNull();
  });
});

test("W35 older turns have results, errors and times as the server sends them", () => {
  const received = { tool: "look", args: "{}", ok: true, result: "x…", result_ref: FILE, duration_ms: 1200 };
  const [turn] = turnsOf([
    {
      turn_id: "t",
      role: "assistant",
      content: "",
      timestamp: "",
      tools: [received, { tool: "dig", args: "{}", ok: false, error: "stuck" }],
    },
  ]);
  expect(turn?.tools).toEqual([
    { callId: "", tool: "look", args: "{}", ok: true, error: null, result: "x…", resultRef: FILE, durationMs: 1200 },
    { callId: "", tool: "dig", args: "{}", ok: false, error: "stuck" },
  ]);
});

describe("W35 in the chat", () => {
  let chat: ArpChat;
  const start = message("tool_start", 2, { payload: { tool: "lo\u202ead", args: "{}", call_id: "a" } });
  const progress = (payload: object) => message("tool_progress", null, { payload: { call_id: "a", ...payload } });
  const line = () => chat.querySelector(".arp-step-progress");

  beforeEach(async () => {
    chat = await entered();
    await report(chat, message("input", 1, { input_type: "text", data: { text: "Hi" }, id: "i" }), start);
    await vi.waitFor(() => expect(chat.querySelector(".arp-step")).not.toBeNull());
  });

  afterEach(() => left(chat));

  test("progress has a text, and a bar if it can be measured; new progress replaces the old", async () => {
    expect(line()).toBeNull();
    await report(chat, progress({ text: "Reading\u202e", done: 2, total: 5 }));
    expect(words(line())).toBe("Reading⟨U+202E⟩ 2 of 5 done");
    const bar = line()?.querySelector("progress");
    expect([bar?.value, bar?.max, bar?.getAttribute("aria-label"), bar?.getAttribute("aria-valuetext")]).toEqual([
      2,
      5,
      "Running lo⟨U+202E⟩ad",
      "2 of 5 done",
    ]);
    await report(chat, progress({ text: "Sorting" }));
    expect(words(line())).toBe("Sorting");
    for (const odd of [{ done: 3 }, { done: 3, total: 0 }]) {
      await report(chat, progress(odd));
      expect(words(line())).toBe("3");
      expect(line()?.querySelector("progress")).toBeNull();
    }
  });

  test("the duration is the one that the agent side reports", async () => {
    await report(
      chat,
      progress({ text: "Reading" }),
      message("tool_end", 3, {
        payload: { tool: "lo\u202ead", ok: true, call_id: "a", result: "42", duration_ms: 61_500 },
      }),
    );
    expect(line()).toBeNull();
    expect(chat.querySelector(".arp-step arp-elapsed")?.textContent).toBe("1:02");
    await vi.waitFor(() => expect(words(chat.querySelector("arp-tool-detail"))).toBe("Result42"));
  });
});
