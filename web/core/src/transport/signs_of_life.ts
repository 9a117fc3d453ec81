/**
 * Detects a link that died without a word.
 *
 * Theory of operation. After a silence of `ASK_MS` the server is pinged. Any frame is an answer. Without one in time,
 * the link is lost. Two things look like a dead link and are not. A timer that is much too late says that this machine
 * slept or that the page is in the background, so the server is pinged again. One large message on a slow network is
 * silence, too, so the time for an answer is doubled after each link that was lost like this, until a server answers.
 */

import { newId } from "../protocol/new_id.js";
import type { Ping } from "../protocol/generated/wire.js";
import type { Loss } from "./link.js";

/** Silence after which the server is pinged. */
const ASK_MS = 10_000;
/** Time for an answer. */
const ANSWER_MS = 10_000;
/** Maximum of that time. */
const MOST_ANSWER_MS = 80_000;
/** Delay of a timer from which its lateness says nothing about the server. */
const LATE_MS = 2000;
/** Silence before a wake-up after which the link may have died unseen. */
const QUIET_MS = 30_000;
/** Time for an answer after a wake-up, because the user is waiting. */
const WAKE_MS = 3000;

/** The functions of `createSignsOfLife`; a tuple, because the names of its parts then cost no bytes. */
export type SignsOfLife = readonly [
  /** Record that something was received. */
  record: () => void,
  /** Wait for a silence, then ping the server. */
  listen: () => void,
  /** Whether the link was silent for so long that it may have died unseen. */
  isQuiet: () => boolean,
  /** Ping the server at once, for a user who is waiting. */
  ask: () => void,
];

/**
 * Create the signs of life of a driver.
 *
 * @param after Sets the timer of the driver; it runs while the session is online.
 * @param send Sends a ping; `false` if the link was lost.
 * @param lose Reports that the link is dead.
 */
export function createSignsOfLife(
  after: (ms: number, action: () => void) => void,
  send: (ping: Ping) => boolean,
  lose: (loss: Loss) => void,
): SignsOfLife {
  let receivedAt = 0;
  /** Whether a ping was sent and nothing has been received since. */
  let isPinged = false;
  /** Time for an answer, if it is more than `ANSWER_MS`. */
  let patience = ANSWER_MS / 2;

  /** One timer serves all frames: setting one for each of thousands of deltas would be slow. */
  const listen = () => {
    const silent = Math.abs(Date.now() - receivedAt); // a clock may be set back
    if (silent >= ASK_MS) ask(Math.max(ANSWER_MS, patience));
    else after(ASK_MS - silent, listen);
  };

  const ask = (wait = WAKE_MS) => {
    const due = Date.now() + wait;
    isPinged = true;
    if (!send({ type: "ping", v: 1, id: newId() })) return;
    after(wait, () => {
      if (!isPinged) {
        patience = ANSWER_MS / 2;
        listen();
      } else if (Math.abs(Date.now() - due) > LATE_MS) ask(wait);
      else {
        patience = Math.min(MOST_ANSWER_MS, 2 * patience);
        lose({ reason: "no sign of life" });
      }
    });
  };

  const record = () => {
    receivedAt = Date.now();
    isPinged = false;
  };

  const isQuiet = () => Date.now() - receivedAt > QUIET_MS;

  return [record, listen, isQuiet, ask];
}
