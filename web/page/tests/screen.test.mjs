/** Protocol.md 2.1, 2.3 and 4, as the page applies them: messages in, state out. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Screen } from "../../../arp/server/static/screen.js";

const text = (id, content) => ({ id, type: "text", props: { content } });

/** A screen of session `s`, after these messages of turn `t` (unless they say another). */
function shown(...messages) {
    const screen = new Screen();
    screen.receive({ type: "session", session_id: "s", epoch: "e", seq: 0, resume: "new" });
    feed(screen, ...messages);
    return screen;
}

function feed(screen, ...messages) {
    return messages.map((message) => screen.receive({ session_id: "s", turn_id: "t", ...message }));
}

const delta = (delta, more = {}) => ({ type: "delta", payload: { delta, ...more } });
const render = (...components) => ({ type: "render", components });
const patch = (...ops) => ({ type: "patch", ops });
const commit = (more = {}) => ({ type: "commit", ...more });
const output = (screen, id = "t") => screen.turns.get(id).output;
const contents = (screen) => output(screen).map((part) => part.props.content);

test("a delta shows on arrival, a render only at its commit", () => {
    const screen = shown(delta("Hel"), delta("lo"), render(text("a", "A")));
    assert.deepEqual(contents(screen), ["Hello"]);
    feed(screen, commit());
    assert.deepEqual(contents(screen), ["Hello", "A"]);
});

test("a delta behind a component opens a new text part with the next id", () => {
    const screen = shown(delta("one"), render(text("a", "A")), commit(), delta("two"));
    assert.deepEqual(
        output(screen).map((part) => part.id),
        ["t/1", "a", "t/2"],
    );
});

test("a delta with a target extends that component, wherever it stands", () => {
    const code = { id: "c", type: "code-block", props: { code: "x = " } };
    const screen = shown(render(code, text("a", "A")), commit(), delta("1", { target: "c" }));
    assert.equal(output(screen)[0].props.code, "x = 1");
});

test("thinking and tools stand beside the output", () => {
    const screen = shown(
        delta("hm", { kind: "thinking" }),
        { type: "tool_start", payload: { tool: "q", args: "{}", call_id: "1" } },
        { type: "tool_start", payload: { tool: "q", args: "{}", call_id: "2" } },
        { type: "tool_end", payload: { tool: "q", ok: false, call_id: "2", error: "no" } },
    );
    const turn = screen.turns.get("t");
    assert.equal(turn.thinking, "hm");
    assert.deepEqual(
        turn.tools.map(({ callId, ok, error }) => [callId, ok, error]),
        [
            ["1", null, null],
            ["2", false, "no"],
        ],
    );
    assert.deepEqual(turn.output, []);
});

test("a render of a known id replaces it in its place, in an earlier turn too", () => {
    const screen = shown(render(text("a", "A"), text("b", "B")), commit({ final: true }));
    feed(screen, { ...render(text("a", "new"), text("c", "C")), turn_id: "u" });
    feed(screen, commit({ turn_id: "u" }));
    assert.deepEqual(contents(screen), ["new", "B"]);
    assert.deepEqual(
        output(screen, "u").map((part) => part.id),
        ["c"],
    );
});

test("a commit with one bad op changes nothing and asks for a snapshot", () => {
    const screen = shown(render(text("a", "A")), commit({ seq: 3 }));
    const before = output(screen);
    const effects = feed(
        screen,
        patch({ op: "update", target: "a", path: "props.content", value: "half" }),
        render(text("b", "B")),
        patch({ op: "remove", target: "nobody" }),
        commit({ seq: 4 }),
    );
    assert.equal(output(screen), before);
    assert.equal(effects.at(-1).kind, "resync");
});

test("what is pending is dropped when the connection goes", () => {
    const screen = shown(render(text("a", "A")));
    screen.dropPending();
    feed(screen, commit());
    assert.equal(screen.turns.has("t"), false);
});

test("seq counts on arrival, but for render and patch at their commit", () => {
    const screen = shown({ ...delta("x"), seq: 7 }, { ...render(text("a", "A")), seq: 8 });
    assert.deepEqual(screen.place, { epoch: "e", seq: 7 });
    feed(screen, commit({ seq: 8 }));
    assert.deepEqual(screen.place, { epoch: "e", seq: 8 });
});

test("a catch-up has no place before its commit, so that nothing of it is told twice", () => {
    const screen = shown({ ...delta("a"), seq: 7 }, { type: "turn", turn_id: "t", status: "running" });
    assert.deepEqual(screen.place, { epoch: "e", seq: 7 });
    feed(screen, delta("b"), render(text("c", "C")));
    assert.equal(screen.place, null);
    feed(screen, commit({ seq: 9 }));
    assert.deepEqual(screen.place, { epoch: "e", seq: 9 });
    feed(screen, { type: "error", turn_id: "t", payload: { error: "no", code: 18 } });
    assert.equal(screen.place, null);
    screen.receive({ type: "session", session_id: "s", epoch: "e", seq: 12, resume: "snapshot" });
    feed(screen, delta("abc"), commit({ seq: 12 }));
    assert.deepEqual(screen.place, { epoch: "e", seq: 12 });
});

test("a snapshot is built aside and takes over at the commit that carries a seq", () => {
    const screen = shown(delta("old"));
    screen.receive({ type: "session", session_id: "s", epoch: "f", seq: 9, resume: "snapshot" });
    feed(screen, render(text("t/1", "new")), commit(), render(text("a", "A")));
    assert.deepEqual(contents(screen), ["old"]);
    assert.equal(screen.loading, true);
    feed(screen, commit({ seq: 9 }));
    assert.deepEqual(contents(screen), ["new", "A"]);
    assert.deepEqual(screen.place, { epoch: "f", seq: 9 });
});

test("a snapshot cut short leaves the old screen and its place", () => {
    const screen = shown({ ...delta("old"), seq: 5 });
    screen.receive({ type: "session", session_id: "s", epoch: "f", seq: 9, resume: "snapshot" });
    feed(screen, render(text("t/1", "new")));
    screen.dropPending();
    assert.deepEqual(contents(screen), ["old"]);
    assert.deepEqual(screen.place, { epoch: "e", seq: 5 });
});

test("a replay goes on where the screen stands", () => {
    const screen = shown({ ...delta("one "), seq: 5 });
    screen.receive({ type: "session", session_id: "s", epoch: "e", seq: 6, resume: "replay" });
    feed(screen, { ...delta("two"), seq: 6 });
    assert.deepEqual(contents(screen), ["one two"]);
});

test("after a snapshot a delta goes on in the text part that the snapshot brought", () => {
    const screen = new Screen();
    screen.receive({ type: "session", session_id: "s", epoch: "e", seq: 2, resume: "snapshot" });
    feed(screen, render(text("t/1", "one ")), commit({ seq: 2 }), delta("two", { target: "t/1" }));
    feed(screen, delta("!"));
    assert.deepEqual(contents(screen), ["one two!"]);
});

test("an input is told once, however often it comes", () => {
    const input = { type: "input", id: "i", input_type: "text", data: { text: "hi" } };
    const screen = shown(input, input);
    assert.equal(screen.turns.get("t").inputs.length, 1);
});

test("an error goes to its input, to its turn, or to everyone", () => {
    const screen = shown();
    const error = (payload, more = {}) => ({
        type: "error",
        payload: { code: 11, ...payload },
        ...more,
    });
    const effects = feed(
        screen,
        error({ error: "bad", id: "i" }),
        error({ error: "failed" }),
        error({ error: "oops" }, { turn_id: undefined }),
    );
    assert.deepEqual(
        effects.map(({ kind }) => kind),
        ["refused", "failed", "notice"],
    );
    assert.deepEqual(
        screen.turns.get("t").errors.map((payload) => payload.error),
        ["failed"],
    );
});

test("a turn is open until its final commit or its last status", () => {
    const screen = shown({ type: "turn", status: "running" });
    assert.equal(screen.turns.get("t").open, true);
    feed(screen, commit({ final: true }));
    assert.equal(screen.turns.get("t").open, false);
});

test("messages of another session and of unknown types change nothing", () => {
    const screen = shown();
    screen.receive({ type: "delta", session_id: "other", turn_id: "t", payload: { delta: "x" } });
    feed(screen, { type: "constructor" }, { type: "of the future" });
    assert.equal(screen.turns.size, 0);
});

test("another surface has its own tree, and replace sets it whole", () => {
    const side = { surface: "side" };
    const screen = shown({ ...render(text("a", "A")), ...side }, commit(side));
    feed(screen, { ...render(text("b", "B")), ...side, replace: true }, commit(side));
    assert.deepEqual(screen.surfaces.get("side"), [text("b", "B")]);
    assert.equal(screen.surfaceOf("b"), "side");
});

test("an input stands behind the output of its moment, or where a snapshot says", () => {
    const input = { type: "input", input_type: "text", data: { text: "more" } };
    const screen = shown(
        input,
        delta("one"),
        render(text("a", "A")),
        commit(),
        input,
        delta("two"),
        { ...input, behind: { component: "t/1", characters: 3 } },
        { ...input, behind: {} },
    );
    assert.deepEqual(
        screen.turns.get("t").inputs.map(({ after }) => after),
        [null, "a", "t/1", null],
    );
});
