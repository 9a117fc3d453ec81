/** Inputs keep their id until they are told back, over lost connections and reloads (protocol.md 2.2). */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Store, endpoints, pageFor, readPage } from "../../../arp/server/static/address.js";
import { Outbox } from "../../../arp/server/static/outbox.js";

const input = (id, more = {}) => ({ type: "input", id, data: { text: id }, ...more });
const ids = (items) => items.map(({ message }) => message.id);

/** A Web Storage that lives as long as the test. */
function storage() {
    const values = new Map();
    return {
        getItem: (key) => values.get(key) ?? null,
        setItem: (key, value) => values.set(key, value),
        removeItem: (key) => values.delete(key),
    };
}

test("an item is sent once, and again with its id after the connection was lost", () => {
    const outbox = new Outbox(new Store(null));
    outbox.add(input("a"));
    assert.deepEqual(ids(outbox.takeWaiting()), ["a"]);
    assert.deepEqual(ids(outbox.takeWaiting()), []);
    outbox.rewind();
    assert.deepEqual(ids(outbox.takeWaiting()), ["a"]);
});

test("what is accepted is not sent again and leaves with its echo", () => {
    const outbox = new Outbox(new Store(null));
    outbox.add(input("a"));
    outbox.takeWaiting();
    outbox.accepted("a");
    outbox.rewind();
    assert.deepEqual(ids(outbox.takeWaiting()), []);
    outbox.remove("a");
    assert.deepEqual(outbox.items, []);
});

test("unsent inputs survive a reload, in order, also those from before the session had an id", () => {
    const disk = storage();
    const before = new Outbox(new Store(disk));
    before.add(input("a"));
    before.open("s");
    before.add(input("b"));
    const after = new Outbox(new Store(disk));
    after.open("s");
    assert.deepEqual(ids(after.takeWaiting()), ["a", "b"]);
});

test("what was written without any session is there after a reload", () => {
    const disk = storage();
    new Outbox(new Store(disk)).add(input("a"));
    assert.deepEqual(ids(new Outbox(new Store(disk)).items), ["a"]);
});

test("inputs of one session are not seen in another", () => {
    const disk = storage();
    const one = new Outbox(new Store(disk));
    one.open("one");
    one.add(input("a"));
    const two = new Outbox(new Store(disk));
    two.open("two");
    assert.deepEqual(two.items, []);
});

test("a refused input waits for the user, and goes again under a new id", () => {
    const outbox = new Outbox(new Store(null));
    outbox.add(input("a"));
    outbox.takeWaiting();
    outbox.refused("a", { error: "no" });
    assert.deepEqual(outbox.takeWaiting(), []);
    outbox.retry("a", "b");
    assert.deepEqual(ids(outbox.takeWaiting()), ["b"]);
});

test("the answer to a component is found while it is on its way", () => {
    const outbox = new Outbox(new Store(null));
    outbox.add(input("a", { source_component: "q" }));
    assert.equal(outbox.answerTo("q").message.id, "a");
    assert.equal(outbox.answerTo("other"), undefined);
});

test("addresses follow the page, under a prefix and with TLS", () => {
    assert.deepEqual(endpoints("https://host/pre/?session=x#y"), {
        socket: "wss://host/pre/_arp/v1",
        input: "https://host/pre/_arp/v1/input",
        workflows: "https://host/pre/_api/workflows",
    });
});

test("the page's address gives session and token, and keeps only the session", () => {
    const href = "http://host/?session=s&lang=de#token=t";
    assert.deepEqual(readPage(href), { sessionId: "s", token: "t" });
    assert.equal(pageFor(href, "other"), "http://host/?lang=de&session=other");
    assert.equal(pageFor(href, null), "http://host/?lang=de");
});
