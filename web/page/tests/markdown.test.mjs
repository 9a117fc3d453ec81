/** The markdown that the page knows, as trees; hostile text stays text and takes linear time. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { parseInline } from "../../../arp/server/static/inline.js";
import { parse, pieceStarts } from "../../../arp/server/static/markdown.js";

const p = (...children) => ({ t: "p", children });

test("emphasis, code and strike", () => {
    assert.deepEqual(parseInline("a **b *c*** `d*e*` ~~f~~"), [
        "a ",
        { t: "strong", children: ["b ", { t: "em", children: ["c"] }] },
        " ",
        { t: "code", text: "d*e*" },
        " ",
        { t: "del", children: ["f"] },
    ]);
});

test("marks that do not open or close stay text", () => {
    assert.deepEqual(parseInline("2 * 3 and snake_case_name and **no"), [
        "2 * 3 and snake_case_name and **no",
    ]);
});

test("while more may follow, open marks count as closed", () => {
    assert.deepEqual(parseInline("a **b", true), ["a ", { t: "strong", children: ["b"] }]);
    assert.deepEqual(parseInline("a `b", true), ["a ", { t: "code", text: "b" }]);
    assert.deepEqual(parseInline("a **", true), ["a "]);
});

test("links with titles, parentheses and bare addresses", () => {
    assert.deepEqual(parseInline('[a](https://b.c/d_(e) "t") https://x.y/z).'), [
        { t: "a", url: "https://b.c/d_(e)", children: ["a"] },
        " ",
        { t: "a", url: "https://x.y/z", children: ["https://x.y/z"] },
        ").",
    ]);
});

test("raw HTML is text", () => {
    assert.deepEqual(parse("<img src=x onerror=alert(1)>"), [p("<img src=x onerror=alert(1)>")]);
});

test("headings, rules, quotes and fences", () => {
    assert.deepEqual(parse("## A ##\n***\n> b\n\n```py\nx\n\n# y\n```\nc"), [
        { t: "h", level: 2, children: ["A"] },
        { t: "rule" },
        { t: "quote", children: [p("b")] },
        { t: "code", language: "py", text: "x\n\n# y" },
        p("c"),
    ]);
});

test("the language of a fence is a plain word or nothing", () => {
    assert.equal(parse('```"><img onerror=1>\nx\n```')[0].language, "");
    assert.equal(parse("```C++ title=x\nx\n```")[0].language, "c++");
});

test("nested and numbered lists", () => {
    const [list] = parse("3. a\n   - b\n   - c\n4. d");
    assert.deepEqual([list.ordered, list.start, list.loose], [true, 3, false]);
    assert.deepEqual(list.items[1], [p("d")]);
    assert.equal(list.items[0][1].items.length, 2);
});

test("tables with alignment and escaped bars", () => {
    assert.deepEqual(parse("|a|b|\n|:-:|--:|\n|x\\|y|1|")[0], {
        t: "table",
        align: ["center", "end"],
        head: [["a"], ["b"]],
        rows: [[["x|y"], ["1"]]],
    });
});

test("a text is cut between blocks, never within a list or a fence", () => {
    assert.deepEqual(pieceStarts("a\n\nb\n\n- c\n\n- d\n\n```\n\n\n```\n\ne"), [0, 3, 6, 16, 27]);
});

test("a text parsed in pieces is the text parsed whole", () => {
    const whole =
        "# a\n\nb **c**\n\n1. d\n\n2. e\n\n| f |\n|---|\n| g |\n\n```\nh\n\ni\n```\n\n> j\n\nk";
    const starts = pieceStarts(whole);
    const pieces = starts.flatMap((start, index) => parse(whole.slice(start, starts[index + 1])));
    assert.deepEqual(pieces, parse(whole));
});

const LENGTH = 200_000;
for (const hostile of [
    "*a ",
    "**a *b ",
    "[",
    "[a](",
    "`a``b```",
    "_a",
    "<",
    "|",
    ">",
    "- ",
    "\\",
    "~~a ",
    "https://)",
]) {
    test(`${JSON.stringify(hostile)} without end takes linear time`, { timeout: 5000 }, () => {
        parse(hostile.repeat(LENGTH / hostile.length));
        parse(hostile.repeat(LENGTH / hostile.length), true);
    });
}
