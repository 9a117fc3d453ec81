/** The six patch operations of protocol.md 4. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { PatchRefused, applyOp, find } from "../../../arp/server/static/tree.js";

const leaf = (id, props = {}) => ({ id, type: "text", props });
const group = (id, ...children) => ({ id, type: "group", props: { children } });
const ids = (list) => list.map(({ id }) => id);
const inGroup = (list, id) => ids(find(list, id).props.children);

const LIST = [leaf("a", { content: "A", rows: [[1], [2]] }), group("g", leaf("b"), leaf("c"))];

test("update sets a property, also inside an array and in a nested component", () => {
    const first = applyOp(LIST, { op: "update", target: "a", path: "props.rows.1.0", value: 9 });
    assert.deepEqual(first[0].props.rows, [[1], [9]]);
    const nested = applyOp(LIST, {
        op: "update",
        target: "c",
        path: "props.content",
        value: "new",
    });
    assert.equal(find(nested, "c").props.content, "new");
    assert.deepEqual(LIST[0].props.rows, [[1], [2]]);
});

test("append extends a string or an array, and notices a wrong offset", () => {
    const text = applyOp(LIST, {
        op: "append",
        target: "a",
        path: "props.content",
        value: "B",
        offset: 1,
    });
    assert.equal(text[0].props.content, "AB");
    const rows = applyOp(LIST, { op: "append", target: "a", path: "props.rows", value: [[3]] });
    assert.deepEqual(rows[0].props.rows, [[1], [2], [3]]);
    const wrong = { op: "append", target: "a", path: "props.content", value: "B", offset: 2 };
    assert.throws(() => applyOp(LIST, wrong), PatchRefused);
});

test("an offset counts code points, as the agent side does", () => {
    const op = { op: "append", target: "a", path: "props.content", value: "!", offset: 1 };
    assert.equal(applyOp([leaf("a", { content: "🦉" })], op)[0].props.content, "🦉!");
});

test("insert places first, last, behind another, or in a group", () => {
    const component = leaf("n");
    assert.deepEqual(ids(applyOp(LIST, { op: "insert", component, after: null })), ["n", "a", "g"]);
    assert.deepEqual(ids(applyOp(LIST, { op: "insert", component })), ["a", "g", "n"]);
    assert.deepEqual(ids(applyOp(LIST, { op: "insert", component, after: "a" })), ["a", "n", "g"]);
    const behind = applyOp(LIST, { op: "insert", component, after: "b" });
    assert.deepEqual(inGroup(behind, "g"), ["b", "n", "c"]);
    const last = applyOp(LIST, { op: "insert", component, parent: "g" });
    assert.deepEqual(inGroup(last, "g"), ["b", "c", "n"]);
});

test("remove, replace and reorder reach nested components", () => {
    assert.deepEqual(inGroup(applyOp(LIST, { op: "remove", target: "b" }), "g"), ["c"]);
    const replaced = applyOp(LIST, { op: "replace", target: "c", component: leaf("d") });
    assert.deepEqual(inGroup(replaced, "g"), ["b", "d"]);
    const moved = applyOp(LIST, { op: "reorder", target: "c", after: null });
    assert.deepEqual(inGroup(moved, "g"), ["c", "b"]);
});

test("an operation without its target gives nothing", () => {
    assert.equal(applyOp(LIST, { op: "remove", target: "nobody" }), undefined);
});

test("what an operation does not touch stays the same object", () => {
    const edited = applyOp(LIST, { op: "update", target: "a", path: "props.content", value: "B" });
    assert.equal(edited[1], LIST[1]);
});

for (const path of [
    "id",
    "props",
    "type.x",
    "props._private",
  "props.__proto__",
  "props.constructor",
  "props.__proto__.polluted",
    "props.constructor.prototype.polluted",
    "props.content.length",
    "props.rows.7",
    "props.rows.-1",
    "props.missing.deeper",
]) {
    test(`the path ${path} is refused`, () => {
        const op = { op: "update", target: "a", path, value: true };
        assert.throws(() => applyOp(LIST, op), PatchRefused);
        assert.equal({}.polluted, undefined);
    });
}

test("an operation that is none is refused", () => {
    assert.throws(() => applyOp(LIST, { op: "toString", target: "a" }), PatchRefused);
});
