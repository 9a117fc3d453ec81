/**
 * Reads a session's facts into a window: the newest, around a place, further back, further on.
 *
 * Theory of operation. The log has no holes, so a stretch of it is asked for by numbers. With a
 * filter that the server knows (types), stretches grow while little is found, since only what is
 * wanted travels; a search for text has to look at each fact here. Each round ends after a bounded
 * number of facts, and the user says whether to go on.
 */

const STEP = 500;
const LONGEST_STEP = 50_000;
/** Facts that travel in one round at most, and matches after which a round ends. */
const ROUND_FACTS = 10_000;
const ROUND_STRETCHES = 24;
const ENOUGH = 200;
const PAGE = 1000;

export class History {
  /** `ask(params)` gives a page of `agentSession/events`; `window` is filled. */
  constructor(ask, window) {
    this.ask = ask;
    this.window = window;
    this.busy = null;
    this.#generation = 0;
  }

  #generation;

  /** Forgets what is under way: it answers to nobody. */
  restart() {
    this.#generation += 1;
    this.busy = null;
  }

  /** Looks back until enough is found, or the round is over. */
  older() {
    return this.#run("older", async (isMine) => {
      const { window } = this;
      let step = STEP;
      let found = 0;
      let travelled = 0;
      for (let round = 0; round < ROUND_STRETCHES; round += 1) {
        if (window.atStart || found >= ENOUGH || travelled >= ROUND_FACTS) return;
        const low = Math.max(0, window.low - step);
        const facts = await this.#stretch(low, window.low, isMine);
        if (!isMine()) return;
        travelled += facts.length;
        const added = window.addOlder(facts, low);
        found += added;
        step = this.#next(step, added);
      }
    });
  }

  /** Looks on until enough is found, the newest is reached, or the round is over. */
  newer(head) {
    return this.#run("newer", async (isMine) => {
      const { window } = this;
      let step = STEP;
      let found = 0;
      for (let round = 0; round < ROUND_STRETCHES; round += 1) {
        const end = head();
        if (window.high >= end) {
          window.live = true;
          return;
        }
        if (found >= ENOUGH) return;
        const high = Math.min(end, window.high + step);
        const facts = await this.#stretch(window.high, high, isMine);
        if (!isMine()) return;
        const added = window.addNewer(facts, high);
        found += added;
        step = this.#next(step, added);
      }
    });
  }

  #next(step, added) {
    const { chosen, text, turn } = this.window.filter;
    const serverChooses = chosen.length > 0 && !text && turn === null;
    return serverChooses && added < ENOUGH / 4 ? Math.min(LONGEST_STEP, step * 2) : step;
  }

  /** Every fact after `low`, up to `high`, that the server's part of the filter takes. */
  async #stretch(low, high, isMine) {
    const facts = [];
    let after = low;
    while (after < high && isMine()) {
      const params = { after, before: high + 1, limit: PAGE, types: this.window.filter.chosen };
      const page = await this.ask(params);
      facts.push(...page.events);
      if (page.next <= after) break;
      after = page.next;
    }
    return facts;
  }

  async #run(what, work) {
    if (this.busy) return;
    this.busy = what;
    const mine = this.#generation;
    const isMine = () => mine === this.#generation;
    try {
      await work(isMine);
    } finally {
      if (isMine()) this.busy = null;
    }
  }
}
