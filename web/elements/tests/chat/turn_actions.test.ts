/** W33: what another version of a turn does to what runs. */

import type { ArpClient, TurnState } from "@agent-rendering/core";
import { expect, test } from "vitest";
import { turnActions } from "../../src/chat/message/turn_actions.js";

const TURN = { id: "t1", final: true } as TurnState;

/** A client with turns of these states; `end` ends the one that runs. */
function playing(states: { [id: string]: TurnState["status"] }) {
  const received: string[] = [];
  const listeners = new Set<() => void>();
  let activeTurn = Object.keys(states).find((id) => states[id] === "running") ?? null;
  const client = {
    sessionId: "s",
    store: {
      status: {
        get: () => ({ activeTurn }),
        subscribe: (listener: () => void) => {
          listeners.add(listener);
          return () => void listeners.delete(listener);
        },
      },
      turnIds: { get: () => Object.keys(states) },
      turn: (id: string) => ({ get: () => ({ id, status: states[id] }) }),
    },
    stop: (id: string) => received.push(`stop ${id}`),
    edit: (id: string, text: string) => received.push(`edit ${id} ${text}`),
    regenerate: (id: string) => received.push(`regenerate ${id}`),
    acknowledged: async () => null,
  };
  return {
    told: received,
    client,
    actions: turnActions(client as unknown as ArpClient, () => undefined),
    hear: () => [...listeners].forEach((listener) => listener()),
    end: () => (activeTurn = null),
    listeners,
  };
}

test("W33 what runs is stopped, and when it is over the edit goes out, once", () => {
  const { actions, told: received, hear: receive, end, listeners } = playing({ t1: "completed", t2: "running" });
  actions.edit?.(TURN, "other words");
  receive();
  expect(received).toEqual(["stop t2"]);
  end();
  receive();
  receive();
  expect([received, listeners.size]).toEqual([["stop t2", "edit t1 other words"], 0]);
});

test("W33 asked for twice while it stops, only the last goes out", () => {
  const { actions, told: received, hear: receive, end } = playing({ t1: "completed", t2: "running" });
  actions.regenerate?.(TURN);
  actions.edit?.(TURN, "rather this");
  end();
  receive();
  expect(received).toEqual(["stop t2", "stop t2", "edit t1 rather this"]);
});

test("W33 where nothing runs it goes out at once", () => {
  const { actions, told: received } = playing({ t1: "completed" });
  actions.regenerate?.(TURN);
  expect(received).toEqual(["regenerate t1"]);
});

test("W33 what is queued is not let go for it: the server refuses", () => {
  const { actions, told: received } = playing({ t1: "completed", t2: "running", t3: "queued" });
  actions.regenerate?.(TURN);
  expect(received).toEqual(["regenerate t1"]);
});

test("W24 what is queued is changed while another runs", () => {
  const { actions, told: received } = playing({ t1: "running", t2: "queued" });
  actions.edit?.({ id: "t2", final: false } as TurnState, "later");
  expect(received).toEqual(["edit t2 later"]);
});

test("W59 what was meant for another chat is not done in this one", () => {
  const {
    actions,
    client,
    told: received,
    hear: receive,
    end,
    listeners,
  } = playing({ t1: "completed", t2: "running" });
  actions.regenerate?.(TURN);
  client.sessionId = "another";
  end();
  receive();
  expect([received, listeners.size]).toEqual([["stop t2"], 0]);
});
