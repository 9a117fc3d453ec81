/** Reconnecting by protocol.md 1 and 2.3, with a socket and a clock that the tests hold. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Connection } from "../../../arp/server/static/connection.js";

/** A connection in a world without network; `world.sockets` are those it opened, `world.due` its timer. */
function world(random = 1) {
    const world = { sockets: [], received: [], due: null, time: 0 };
    class FakeSocket {
        sent = [];
        closed = false;

        constructor(url, protocol) {
            Object.assign(this, { url, protocol });
            world.sockets.push(this);
        }

        send(text) {
            this.sent.push(JSON.parse(text));
        }

        close() {
            this.closed = true;
        }
    }
    const env = {
        WebSocket: FakeSocket,
        setTimeout: (action, ms) => {
            world.due = { action, ms };
            return 1;
        },
        clearTimeout: () => {
            world.due = null;
        },
        random: () => random,
        now: () => world.time,
    };
    const options = {
        url: "ws://host/_arp/v1",
        hello: () => ({ type: "hello" }),
        onMessage: (message) => world.received.push(message.type),
        onPhase: () => {},
    };
    world.connection = new Connection(options, env);
    return world;
}

function welcome(world) {
    const socket = world.sockets.at(-1);
    socket.onopen();
    socket.onmessage({ data: '{"type":"session"}' });
    return socket;
}

test("it says hello first and is online when the session answers", () => {
    const it = world();
    it.connection.connect();
    const [socket] = it.sockets;
    assert.equal(socket.protocol, "arp.session.v1.json");
    assert.equal(it.connection.send({ type: "input" }), false);
    welcome(it);
    assert.equal(it.connection.phase, "online");
    assert.equal(it.connection.send({ type: "input" }), true);
    assert.deepEqual(socket.sent, [{ type: "hello" }, { type: "input" }]);
});

test("connecting twice opens one socket", () => {
    const it = world();
    it.connection.connect();
    it.connection.connect();
    assert.equal(it.sockets.length, 1);
});

test("an array is a batch; what is not JSON, or no message, is passed over", () => {
    const it = world();
    it.connection.connect();
    const socket = welcome(it);
    socket.onmessage({ data: '[{"type":"a"},{"type":"b"},null,{}]' });
    socket.onmessage({ data: "{" });
    assert.deepEqual(it.received, ["session", "a", "b"]);
});

test("it waits 1, 2, 4, 8, 16, 16 seconds at most between tries", () => {
    const it = world();
    const waits = [];
    it.connection.connect();
    for (let round = 0; round < 6; round += 1) {
        it.sockets.at(-1).onclose({ code: 1006 });
        waits.push(it.due.ms);
        it.due.action();
    }
    assert.deepEqual(waits, [1000, 2000, 4000, 8000, 16000, 16000]);
});

test("the wait is a random part of the step", () => {
    const it = world(0.25);
    it.connection.connect();
    it.sockets[0].onclose({ code: 1006 });
    assert.equal(it.due.ms, 250);
});

test("a connection that held begins the steps anew, one that broke at once does not", () => {
    const it = world();
    it.connection.connect();
    welcome(it).onclose({ code: 1006 });
    it.due.action();
    const socket = welcome(it);
    assert.equal(it.connection.attempt, 1);
    it.time += 60_000;
    socket.onclose({ code: 1012 });
    assert.equal(it.due.ms, 1000);
});

test("a late frame of an old socket reaches nobody", () => {
    const it = world();
    it.connection.connect();
    const socket = welcome(it);
    it.connection.restart();
    assert.equal(socket.onmessage, null);
    assert.equal(socket.closed, true);
});

test("a server that does not want us is not asked again by itself", () => {
    const it = world();
    it.connection.connect();
    it.sockets[0].onclose({ code: 1008 });
    assert.equal(it.connection.phase, "refused");
    assert.equal(it.due, null);
    it.connection.retryNow();
    assert.equal(it.sockets.length, 2);
});

test("a handshake that never ends is given up", () => {
    const it = world();
    it.connection.connect();
    it.due.action();
    assert.equal(it.connection.phase, "waiting");
    assert.equal(it.sockets[0].closed, true);
});
