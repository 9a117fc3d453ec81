/** Logic of the page `/_inspect` that needs no document. Run by test_inspect_logic.py. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const from = (name) =>
    import(new URL(`../../../arp/server/static/inspect/${name}`, import.meta.url));
const { Filter, FactWindow, MOST, rowsOf, rowWith, typesIn } = await from("fact_window.js");
const { History } = await from("history.js");
const { line, tone, isProblem } = await from("describe.js");
const { controlsVisible, printed } = await from("printed.js");
const { addressOf, readPlace, rpcAddress, Token, tokenIn } = await from("place.js");
const { Rpc } = await from("rpc.js");
const { tell } = await from("story.js");
const { ago, bytes, money, span } = await from("words.js");

const fact = (sequence, type = "model.delta", more = {}) => ({
    sequence,
    type,
    turnId: "t1",
    timestamp: "2026-11-21T08:00:00.000000Z",
    payload: {},
    ...more,
});

test("a line tells the tokens that are known", () => {
    const told = (payload) => line(fact(1, "cost.recorded", { payload: { model: "m", ...payload } }));
    assert.match(told({ inputTokens: 0, outputTokens: 5 }), /0 tokens read.*5 tokens written/);
    const price = told({ amount: 0.5, currency: "EUR" });
    assert.match(price, /0.5 EUR/);
    assert.doesNotMatch(price, /token|undefined/);
});

/** A log of `count` facts, each tenth a failed tool; counts what is asked of it. */
function log(count) {
    const facts = [];
    for (let n = 1; n <= count; n += 1) facts.push(fact(n, n % 10 ? "model.delta" : "tool.failed"));
    const asked = [];
    const ask = async ({ after, before, limit, types }) => {
        asked.push([after, before]);
        const fits = (one) => !types.length || types.some((type) => one.type.startsWith(type));
        const events = facts
            .slice(after, before - 1)
            .filter(fits)
            .slice(0, limit);
        const isFull = events.length === limit;
        return { events, next: isFull ? events.at(-1).sequence : before - 1 };
    };
    return { ask, asked };
}

test("older facts come before those that are there, until the start", async () => {
    const { ask } = log(1200);
    const window = new FactWindow();
    window.reset(1200, true);
    const history = new History(ask, window);
    await history.older();
    assert.deepEqual([window.low, window.facts.length, window.facts[0].sequence], [700, 500, 701]);
    await history.older();
    await history.older();
    assert.equal(window.atStart, true);
    assert.deepEqual(
        window.facts.map((one) => one.sequence),
        [...Array(1200).keys()].map((n) => n + 1),
    );
});

test("a window keeps a bounded number and lets go at the other end", async () => {
    const { ask } = log(10_000);
    const window = new FactWindow();
    window.reset(10_000, true);
    const history = new History(ask, window);
    while (!window.atStart) await history.older();
    assert.deepEqual([window.facts.length, window.facts[0].sequence], [MOST, 1]);
    assert.deepEqual([window.live, window.high], [false, MOST]);
    while (!window.live) await history.newer(() => 10_000);
    assert.deepEqual([window.facts.length, window.high, window.low], [MOST, 10_000, 7000]);
});

test("what the server can choose by is looked for in growing stretches", async () => {
    const { ask, asked } = log(1_000_000);
    const window = new FactWindow(new Filter({ types: ["turn"] }));
    window.reset(1_000_000, true);
    await new History(ask, window).older();
    assert.ok(asked.length <= 24, `${asked.length} requests`);
    assert.ok(window.low < 200_000, `looked back to ${window.low}`);
});

test("a new fact is taken by a live window only, and only if the filter takes it", () => {
    const window = new FactWindow(new Filter({ types: ["tool"] }));
    window.reset(5, true);
    window.push(fact(6, "tool.failed"));
    window.push(fact(7, "model.delta"));
    window.push(fact(6, "tool.failed"));
    assert.deepEqual([window.facts.map((one) => one.sequence), window.high], [[6], 7]);
    window.live = false;
    window.push(fact(8, "tool.failed"));
    assert.equal(window.facts.length, 1);
});

test("an answer that comes after the search changed is thrown away", async () => {
    const window = new FactWindow();
    window.reset(10, true);
    let answer;
    const history = new History(() => new Promise((resolve) => (answer = resolve)), window);
    const reading = history.older();
    history.restart();
    window.reset(3, true);
    answer({ events: [fact(9)], next: 10 });
    await reading;
    assert.deepEqual([window.facts, window.low], [[], 3]);
});

test("filters take by family, type, turn, text and problems", () => {
    const failed = fact(1, "tool.failed", { payload: { error: "No such TABLE" }, turnId: "t2" });
    const takes = (asked, one = failed) => new Filter(asked).takes(one);
    assert.ok(takes({ types: ["tool"] }) && takes({ types: ["tool.failed"] }));
    assert.ok(!takes({ types: ["too"] }) && !takes({ types: ["tool.result"] }));
    assert.ok(takes({ turn: "t2" }) && !takes({ turn: "t1" }));
    assert.ok(takes({ text: "such table" }) && !takes({ text: "chair" }));
    assert.ok(takes({ problems: true }) && !takes({ problems: true }, fact(2)));
    assert.deepEqual(typesIn(" tool.*, model.delta tool"), ["tool", "model.delta"]);
});

test("neighbouring pieces of one text are one row", () => {
    const facts = [
        fact(1),
        fact(2),
        fact(3, "model.delta", { turnId: "t2" }),
        fact(5, "model.delta", { turnId: "t2" }),
        fact(6, "tool.failed"),
    ];
    const rows = rowsOf(facts, true);
    assert.deepEqual(
        rows.map((row) => [row.seq, row.last.sequence]),
        [
            [1, 2],
            [3, 3],
            [5, 5],
            [6, 6],
        ],
    );
    assert.equal(rowsOf(facts, false).length, 5);
    assert.deepEqual(
        [2, 4, 6, 7].map((seq) => rowWith(rows, seq)),
        [0, -1, 3, -1],
    );
});

test("a line says what a fact holds, and how bad it is", () => {
    const denied = fact(1, "permission.evaluated", {
        payload: {
            tool: "shell",
            decision: "deny",
            decidedBy: { kind: "rule", name: "no-removal" },
        },
    });
    assert.equal(line(denied), "shell · deny · by rule no-removal");
    assert.equal(tone(denied), "bad");
    assert.ok(isProblem(denied));
    const ended = fact(2, "process.completed", { payload: { exitCode: 2, durationMs: 12.4 } });
    assert.deepEqual([line(ended), tone(ended)], ["exit code 2 · 12 ms", "bad"]);
    const shown = fact(3, "artifact.changed", {
        payload: {
            surface: "main",
            changes: [{ render: [{ type: "table" }] }, { patch: [{ op: "remove", target: "a" }] }],
        },
    });
    assert.equal(line(shown), "main · shows table · remove a");
    assert.equal(tone(fact(4, "turn.failed", { statusReason: "cancelled" })), "warn");
});

test("a snapshot is told: what goes on, or why it ended so", () => {
    const at = (second) => `2026-11-21T08:00:0${second}.000Z`;
    const turn = {
        turnId: "t1",
        status: "running",
        startedAt: at(0),
        lastSequence: 9,
        firstSequence: 1,
    };
    const call = {
        turnId: "t1",
        tool: "query",
        status: "running",
        firstSequence: 4,
        startedAt: at(1),
    };
    const thread = {
        threadId: "main",
        status: "running",
        activeTurnId: "t1",
        turns: [turn],
        toolCalls: [call],
        pendingRequests: [],
        incidents: [],
    };
    const now = tell({ threads: [thread] }, at(5));
    assert.deepEqual([now.tone, now.headline], ["busy", "Turn t1 works with tools, 5.0 s so far"]);
    assert.deepEqual(
        now.lines.map((one) => [one.text, one.seq]),
        [["Calls query", 4]],
    );
    const incident = { turnId: "t1", type: "tool.failed", message: "no table", lastSequence: 7 };
    const over = tell(
        {
            threads: [
                {
                    ...thread,
                    status: "failed",
                    activeTurnId: undefined,
                    toolCalls: [],
                    turns: [{ ...turn, status: "failed", endedAt: at(3) }],
                    lastOutcome: { turnId: "t1", status: "failed", sequence: 9, error: "no table" },
                    incidents: [
                        incident,
                        { ...incident, type: "runtime.error", lastSequence: 8 },
                        { ...incident, turnId: "t0" },
                    ],
                },
            ],
        },
        at(5),
    );
    assert.equal(over.headline, "Turn t1 failed after 3.0 s: no table");
    assert.deepEqual(
        over.lines.map((one) => one.text),
        ["tool.failed · no table"],
    );
});

test("the address names a session and a fact, and hides a token", () => {
    const href = "https://host/agent/_inspect#session=a%26b&seq=12&token=secret";
    const place = readPlace(href);
    assert.deepEqual(place, { session: "a&b", seq: 12, view: null, token: "secret" });
    assert.equal(addressOf(href, place), "https://host/agent/_inspect#session=a%26b&seq=12");
    assert.equal(readPlace("http://h/#seq=0x1").seq, null);
    assert.equal(rpcAddress("https://host/agent/_inspect?x#y"), "wss://host/agent/_api/rpc");
    const kept = new Map([["arp.token", "of the chat page"]]);
    const shared = new Token({
        getItem: (name) => kept.get(name) ?? null,
        setItem: (name, value) => kept.set(name, value),
    });
    assert.equal(shared.value, "of the chat page");
    shared.keep("mine");
    assert.equal(kept.get("arp.token"), "mine");
    assert.equal(tokenIn(" https://h/#token=a%2Bb&x=1 "), "a+b");
    assert.equal(tokenIn(" abc "), "abc");
    const token = new Token({
        getItem: () => null,
        setItem: () => {
            throw new Error();
        },
    });
    token.keep("t");
    assert.equal(token.value, "t");
});

test("times, sizes and money are short words", () => {
    assert.deepEqual(
        [span(80), span(4200), span(61_000), span(NaN)],
        ["80 ms", "4.2 s", "1 min", ""],
    );
    assert.equal(ago("2026-11-21T08:00:00Z", Date.parse("2026-11-21T10:30:00Z")), "2 h ago");
    assert.deepEqual([bytes(29), bytes(10 * 2 ** 20)], ["29 bytes", "10.0 MiB"]);
    assert.equal(money({ USD: 0.1 + 0.2, EUR: 1 }), "0.3 USD + 1 EUR");
});

/** A socket whose other end is the test. */
class FakeSocket {
    static made = [];
    sent = [];
    constructor(url) {
        this.url = url;
        FakeSocket.made.push(this);
    }
    send(text) {
        this.sent.push(JSON.parse(text));
    }
    close() {}
    answer(result) {
        this.onmessage({ data: JSON.stringify({ id: this.sent.at(-1).id, ...result }) });
    }
}

function connected(token = null) {
    FakeSocket.made = [];
    const timers = [];
    const phases = [];
    const env = {
        WebSocket: FakeSocket,
        setTimeout: (work, ms) => timers.push({ work, ms }),
        clearTimeout: () => {},
        random: () => 1,
        now: () => 0,
    };
    const rpc = new Rpc(
        {
            url: "ws://h",
            token: () => token,
            onPhase: () => phases.push(rpc.phase),
            onNotice: () => {},
        },
        env,
    );
    rpc.connect();
    FakeSocket.made[0].onopen();
    return { rpc, timers, phases };
}

const turns = () => new Promise((resolve) => setImmediate(resolve));

test("a lost socket fails what was asked, and comes back after growing waits", async () => {
    const { rpc, timers, phases } = connected("t");
    assert.deepEqual(FakeSocket.made[0].sent[0].params, { token: "t" });
    FakeSocket.made[0].answer({ result: {} });
    await turns();
    const asked = rpc.call("agentSession/list");
    FakeSocket.made[0].onclose({ code: 1006 });
    await assert.rejects(asked, { message: "the connection was lost" });
    timers.at(-1).work();
    FakeSocket.made[1].onclose({ code: 1006 });
    assert.deepEqual(
        timers.map(({ ms }) => ms).filter((ms) => ms < 10_000),
        [1000, 2000],
    );
    assert.deepEqual(phases, ["connecting", "online", "waiting", "connecting", "waiting"]);
});

test("an integer of 64 bits in an answer is read without rounding", async () => {
    const { rpc } = connected("t");
    FakeSocket.made[0].answer({ result: {} });
    await turns();
    const asked = rpc.call("agentSession/read");
    const { id } = FakeSocket.made[0].sent.at(-1);
    const result = '{"id":9223372036854775807,"small":9007199254740991,"text":"9007199254740993 \\" 1"}';
    FakeSocket.made[0].onmessage({ data: `{"jsonrpc":"2.0","id":${id},"result":${result}}` });
    assert.deepEqual(await asked, { id: "9223372036854775807", small: 9007199254740991, text: '9007199254740993 " 1' });
});

test("a refused token is not tried again", async () => {
    const { rpc, timers } = connected("wrong");
    const tried = timers.length;
    FakeSocket.made[0].answer({
        error: { code: -32006, message: "no", data: { name: "UNAUTHENTICATED" } },
    });
    await turns();
    assert.deepEqual([rpc.phase, timers.length], ["refused", tried]);
});

test("the output of programs is read as in the page, and nothing that a tool is called with", () => {
    const cases = new URL("../../../schemas/cases/program_output.json", import.meta.url);
    for (const [, text, shown] of JSON.parse(readFileSync(cases, "utf8")))
        assert.equal(controlsVisible(printed(text)), shown);
    const output = "\u001b[31m10%\r100%\u001b[0m";
    const payload = { tool: "pip", preview: output, error: output, args: output };
    assert.equal(line(fact(1, "tool.result", { payload })), "pip · 100%");
    assert.equal(line(fact(1, "tool.failed", { payload })), "pip · 100%");
    assert.match(line(fact(1, "tool.args", { payload })), /10%.*100%/s);
});
