import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  chartTable,
  componentToMarkdown,
  fromJson,
  toCsv,
  toJson,
  toMarkdown,
  toMarkdownTable,
  toTsv,
  type Cell,
} from "../src/export.js";
import { BUILT_IN_COMPONENTS, type TurnState } from "../src/index.js";
import type { Json, JsonObject } from "../src/index.js";
import { text } from "./fakes.js";

const TURN: TurnState = {
  id: "t1",
  status: "completed",
  position: null,
  inputs: [{ type: "input", session_id: "s", input_type: "text", data: { text: "Sales?" } }],
  output: [
    text("t1/1", "Here they **are**."),
    { id: "a", type: "table", props: { title: "Sales", headers: ["Month", "Total"], rows: [["a|b", 1], ["c"]] } },
  ],
  tools: [{ callId: "c", tool: "query", args: '{"a":1}', ok: true, error: null }],
  thinking: "hm",
  errors: [{ error: "it broke", code: 18 }],
  marks: [{ kind: "input", number: 0, component: null, characters: null }],
  permissions: [],
  usage: null,
  final: true,
  at: "2026-11-21T12:00:00.000Z",
};

test("a conversation is exported as Markdown", () => {
  expect(toMarkdown([TURN], "My chat")).toBe(`# My chat

## You

Sales?

## Agent

> Tool: query \` {"a":1} \`

Here they **are**.

**Sales**

| Month | Total |
| --- | --- |
| a\\|b | 1 |
| c |  |

> Error: it broke
`);
});

test("the result of a tool is below it, whatever backticks it contains", () => {
  const tools = [{ callId: "c", tool: "query", args: "{}", ok: true, error: null, result: "one\n```\n> two" }];
  const turn = { ...TURN, inputs: [], output: [], errors: [], tools };
  expect(toMarkdown([turn])).toBe(
    "## Agent\n\n> Tool: query ` {} `\n\n> Result:\n>\n> ````\n> one\n> ```\n> > two\n> ````\n",
  );
  const words = { you: "Sie", agent: "Agent", tool: "Werkzeug", error: "Fehler" };
  expect(toMarkdown([turn], "", words)).toContain("> Result:");
  expect(toMarkdown([turn], "", { ...words, result: "Ergebnis" })).toContain("> Ergebnis:");
});

test("a conversation exported as JSON is the same when it is read", () => {
  expect(fromJson(toJson([TURN], "My chat"))).toEqual({
    format: "arp-chat",
    version: 1,
    title: "My chat",
    turns: [TURN],
  });
});

test.each(["", "{", "[]", "null", '{"format":"arp-chat","version":2,"turns":[]}'])("%j is refused", (file) => {
  expect(() => fromJson(file)).toThrow(TypeError);
});

test("whatever a file contains, every turn has all fields", () => {
  const odd = { format: "arp-chat", version: 1, title: "x", turns: [null, { output: [3, { id: "a" }] }] };
  for (const turn of fromJson(JSON.stringify(odd)).turns) {
    expect(turn).toMatchObject({ id: "", inputs: [], output: [], tools: [], errors: [], thinking: "", final: true });
  }
});

describe("tables", () => {
  test("CSV quotes texts that need it, and defuses formulas but not numbers", () => {
    expect(
      toCsv(
        ["a", 'say "b"'],
        [
          ["x,y", -5],
          ["=1+1", null],
          ["+1", "line\nline"],
          ["@x", true],
        ],
      ),
    ).toBe('a,"say ""b"""\r\n"x,y",-5\r\n\'=1+1,\r\n\'+1,"line\nline"\r\n\'@x,true\r\n');
  });

  test("CSV defuses formulas after blanks that spreadsheets skip, and quotes cells with semicolons", () => {
    expect(toCsv(["=h"], [["\n=1+1"], ["\r=1"], ["\t=1"], ["x;=cmd()"], [" =1"], ["-1"], [-1]])).toBe(
      '\'=h\r\n"\'\n=1+1"\r\n"\'\r=1"\r\n\'\t=1\r\n"x;=cmd()"\r\n =1\r\n\'-1\r\n-1\r\n',
    );
  });

  test("TSV quotes tabs and line breaks", () => {
    expect(toTsv(["a", "b"], [["x\ty", 1.5]])).toBe('a\tb\r\n"x\ty"\t1.5\r\n');
  });

  test("Markdown fills short rows and keeps long ones", () => {
    expect(toMarkdownTable(["a"], [["1", "2"], []])).toBe("| a |  |\n| --- | --- |\n| 1 | 2 |\n|  |  |");
    expect(toMarkdownTable([], [])).toBe("");
  });
});

const SAMPLES: { [type: string]: [JsonObject, string] } = {
  "status-card": [
    { status: "error", title: "Failed", message: "No route", sections: [{ label: "Why", content: "down" }] },
    "**Failed**\n\n(error)\n\nNo route\n\n**Why:** down",
  ],
  "code-block": [{ language: "md", code: "```\nx\n```" }, "````md\n```\nx\n```\n````"],
  diff: [{ before: "a", after: "b", before_label: "old" }, "old\n\n```\na\n```\n\n```\nb\n```"],
  "key-value": [{ items: [{ key: "k", value: 1 }] }, "- **k:** 1"],
  progress: [
    {
      steps: [
        { name: "one", status: "done" },
        { name: "two", status: "active" },
      ],
    },
    "- [x] one (done)\n- [ ] two (active)",
  ],
  chart: [
    {
      type: "bar",
      labels: ["Q1"],
      datasets: [
        { label: "S", data: [null] },
        { label: "T", data: [2] },
      ],
    },
    "|  | S | T |\n| --- | --- | --- |\n| Q1 |  | 2 |",
  ],
  image: [{ src: "https://h/a b.png", alt: "A [cat]", caption: "Cat" }, "![A [cat]](<https://h/a b.png>)\n\nCat"],
  "product-cards": [{ cards: [{ name: "Pen", price: 2, url: "https://h/" }] }, "- [Pen](<https://h/>), 2"],
  form: [{ fields: [{ name: "n", label: "Name" }], answer: { n: "Ada" } }, "- **Name:** Ada"],
  confirm: [{ title: "Sure?", answer: "confirm" }, "**Sure?**\n\n→ confirm"],
  table: [
    { headers: ["n"], rows: [["a"], ["b"]], selectable: "many", answer: [1, 7] },
    "| n |\n| --- |\n| a |\n| b |\n\n→ b, #8",
  ],
  choices: [{ options: ["a", { label: "B", value: 2 }] }, "- a\n- B"],
  split: [{ left: text("a", "L") as never, right: text("b", "R") as never }, "L\n\nR"],
  tabs: [{ tabs: [{ label: "One", component: text("a", "A") as never }] }, "**One**\n\nA"],
};

const CHARTS = JSON.parse(
  readFileSync(new URL("../../../schemas/cases/chart_tables.json", import.meta.url), "utf8"),
) as { name: string; props: JsonObject; headers: string[]; rows: Cell[][] }[];

test.each(CHARTS.map((one) => [one.name, one] as const))(
  "a chart is the table of the shared case: %s",
  (_, { props, headers, rows }) => {
    expect(chartTable({ ...props, title: "Sales" })).toEqual({ name: "Sales", headers, rows });
  },
);

test.each(Object.entries(SAMPLES))("a %s as Markdown", (type, [props, expected]) => {
  expect(componentToMarkdown({ id: "x", type, props })).toBe(expected);
});

test("an unknown type shows its fallback, or its data", () => {
  const fallback = text("x", "forty-two");
  expect(componentToMarkdown({ id: "x", type: "x-acme-dial", props: {}, fallback })).toBe("forty-two");
  expect(componentToMarkdown({ id: "x", type: "x-acme-dial", props: { a: 1 } })).toBe('```json\n{\n  "a": 1\n}\n```');
});

test("whatever the props, every type becomes text", () => {
  const NAMES =
    "title content headers rows tabs items steps labels datasets cards fields options children left right answer".split(
      " ",
    );
  const props = fc.dictionary(fc.constantFrom(...NAMES), fc.jsonValue(), { noNullPrototype: true });
  fc.assert(
    fc.property(fc.constantFrom(...BUILT_IN_COMPONENTS), props, (type, made) => {
      expect(typeof componentToMarkdown({ id: "x", type, props: made as { [name: string]: Json } })).toBe("string");
    }),
  );
});

test("the name of an author is above their text", () => {
  const output = [
    text("t1/1", "I ask."),
    { id: "a", type: "x-arp-author", props: { name: "Research *Desk*" } },
    text("t1/2", "42."),
  ];
  expect(toMarkdown([{ ...TURN, inputs: [], output, tools: [], errors: [] }])).toBe(
    "## Agent\n\nI ask.\n\n### Research *Desk*\n\n42.\n",
  );
});
