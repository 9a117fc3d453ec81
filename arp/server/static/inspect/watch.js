/**
 * One session as it goes on: its snapshot, its newest sequence, and a window on its facts.
 *
 * Theory of operation. A subscription tells each fact from `head` on: none is missed or told twice;
 * it is made anew after each reconnect, at `head` and of the same epoch. If the log does not go on
 * there, everything begins anew. While facts come, the snapshot is asked for once a second at most.
 */

import { FactWindow, Filter } from "./fact_window.js";
import { History } from "./history.js";
import { Lost } from "./rpc.js";

const SNAPSHOT_MS = 1000;
const AGAIN_MS = 2000;
/** So many facts behind a fact that was asked for are read with it. */
const BEHIND = 200;

export class Watch {
  sessionId = null;
  snapshot = null;
  head = 0;
  /** Why the session cannot be followed; null while it can. */
  trouble = null;
  window = new FactWindow();
  #epoch = null;
  #subscription = null;
  #generation = 0;
  #timer = null;

  /** @param changed() is called when anything here is other than before. */
  constructor(rpc, changed) {
    this.rpc = rpc;
    this.changed = changed;
    this.history = new History((params) => this.#events(params), this.window);
  }

  /** Follows another session, at its newest fact or around one. */
  async open(sessionId, seq = null) {
    this.close();
    this.sessionId = sessionId;
    this.changed();
    await this.#follow(seq);
  }

  close() {
    this.#generation += 1;
    this.history.restart();
    if (this.#subscription) this.#end(this.#subscription);
    this.sessionId = this.snapshot = this.trouble = this.#subscription = this.#epoch = null;
    this.head = 0;
    this.window.reset(0, true);
  }

  /** Goes on after a reconnect. */
  resume() {
    this.#subscription = null;
    if (this.sessionId !== null) this.#follow(null);
  }

  /** Takes a notification of the control plane. */
  notice(method, params) {
    if (params.subscriptionId !== this.#subscription) return;
    if (method === "agentSession/closed") this.#closed(params.error);
    if (method !== "agentSession/event") return;
    const fact = params.event;
    this.head = Math.max(this.head, fact.sequence);
    this.window.push(fact);
    this.#snapshotSoon();
    this.changed();
  }

  /** Looks for something else from where the timeline is: from its newest fact if it is live. */
  async search(filter, place = null) {
    this.window.filter = filter;
    await this.#around(place);
  }

  /** Reads what is around a fact; without one the newest. */
  async #around(seq) {
    this.history.restart();
    const high = seq === null ? this.head : Math.min(this.head, seq + BEHIND);
    this.window.reset(high, high === this.head);
    this.changed();
    await this.older();
  }

  /** Shows the newest facts again. */
  newest() {
    return this.#around(null);
  }

  /** Gives whether a fact can be shown: reads what is around it, without a filter if it must. */
  async reach(seq) {
    if (this.window.facts.some((fact) => fact.sequence === seq)) return true;
    if (seq < 1 || seq > this.head) return false;
    this.window.filter = new Filter();
    await this.#around(seq);
    return this.window.facts.some((fact) => fact.sequence === seq);
  }

  async older() {
    await this.#guard(() => this.history.older());
  }

  async newer() {
    if (!this.window.live) await this.#guard(() => this.history.newer(() => this.head));
  }

  // -- what is asked ------------------------------------------------------------------------------

  #events(params) {
    return this.rpc.call("agentSession/events", { sessionId: this.sessionId, ...params });
  }

  async #follow(seq) {
    const mine = this.#generation;
    const { sessionId } = this;
    const after = this.#epoch === null ? {} : { after: this.head, epoch: this.#epoch };
    let told;
    try {
      told = await this.rpc.call("agentSession/subscribe", { sessionId, ...after });
    } catch (error) {
      if (mine === this.#generation) this.#failed(error);
      return;
    }
    if (mine !== this.#generation) {
      this.#end(told.subscriptionId);
      return;
    }
    this.#subscription = told.subscriptionId;
    this.trouble = null;
    if (told.resume === "events") {
      this.#snapshotSoon();
    } else {
      this.#epoch = told.epoch;
      this.head = told.after;
      this.snapshot = told.snapshot;
      await this.#around(seq);
    }
    this.changed();
  }

  #end(subscriptionId) {
    this.rpc.call("agentSession/unsubscribe", { subscriptionId }).catch(() => {});
  }

  #failed(error) {
    if (error instanceof Lost) return;
    this.trouble = error.message;
    this.changed();
  }

  /** A session that left the server's memory is there when it is asked for; a deleted one is not. */
  #closed(error) {
    this.#subscription = null;
    this.trouble = error.message;
    this.changed();
    const mine = this.#generation;
    setTimeout(() => {
      if (mine === this.#generation && this.#subscription === null) this.#follow(null);
    }, AGAIN_MS);
  }

  #snapshotSoon() {
    if (this.#timer !== null) return;
    this.#timer = setTimeout(async () => {
      const mine = this.#generation;
      try {
        const told = await this.rpc.call("agentSession/read", { sessionId: this.sessionId });
        if (mine === this.#generation) this.snapshot = told;
      } catch {
        /* the next fact, or the next connection, asks again */
      }
      this.#timer = null;
      if (mine === this.#generation && this.snapshot && this.snapshot.sequence < this.head)
        this.#snapshotSoon();
      this.changed();
    }, SNAPSHOT_MS);
  }

  async #guard(work) {
    try {
      await work();
    } catch (error) {
      this.#failed(error);
    }
    this.changed();
  }
}
