/**
 * One socket at a time to the agent side, for as long as the page lives.
 *
 * Theory of operation. Phases: `connecting` (socket opening, or no `session` yet), `online`,
 * `waiting` (until the next try) and `refused` (the server does not want us: only the user tries
 * again). Every way out of `online` leads to `waiting`, with full jitter: a random part of 1, 2, 4,
 * 8, 16 s. The hello is asked for at each try, since it carries the place to resume from. Handlers
 * of an old socket are cut, so a late frame reaches nobody. Source: protocol.md 1, 2.1, 6.
 */

const SUBPROTOCOL = "arp.session.v1.json";
const FIRST_STEP_MS = 1000;
const LAST_STEP_MS = 16000;
const HANDSHAKE_MS = 10000;
/** A session that held this long starts the steps anew; one that breaks at once does not. */
const STABLE_MS = 5000;
const NOT_ALLOWED = 1008;

/** Speaks JSON text frames; knows of the messages only `session`, which means that we are in. */
export class Connection {
  phase = "connecting";
  /** Tries since a connection held. */
  attempt = 0;
  /** When the next try is due, in ms of `env.now`. */
  retryAt = 0;
  #socket = null;
  #timer = null;
  #since = 0;

  /**
   * @param options url; hello() gives the first message of a connection; onMessage(message);
   *   onPhase() is told of every change of phase.
   * @param env WebSocket, setTimeout, clearTimeout, random, now: replaced in tests.
   */
  constructor(options, env = browserEnv()) {
    this.options = options;
    this.env = env;
  }

  /** Opens a socket now, unless one is open or opening. */
  connect() {
    if (this.#socket) return;
    this.#setTimer(HANDSHAKE_MS, () => this.#lost());
    const socket = new this.env.WebSocket(this.options.url, SUBPROTOCOL);
    this.#socket = socket;
    socket.onopen = () => socket.send(JSON.stringify(this.options.hello()));
    socket.onmessage = (event) => this.#receive(event.data);
    socket.onclose = (event) => this.#lost(event.code);
    this.#enter("connecting");
  }

  /** Tries at once instead of at the end of the wait; does nothing while a socket is there. */
  retryNow() {
    if (this.phase === "waiting" || this.phase === "refused") this.connect();
  }

  /** Drops the socket and comes back after a wait: the next hello decides what is sent again. */
  restart() {
    this.#lost();
  }

  /** Drops the socket until the user tries again: what is wrong does not mend itself. */
  refuse() {
    this.#drop();
    this.#enter("refused");
  }

  /** Sends if the session is up; false when it is not, and then nothing has been sent. */
  send(message) {
    if (this.phase !== "online") return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  #receive(text) {
    const socket = this.#socket;
    for (const message of parse(text)) {
      if (message.type === "session") this.#welcome();
      this.options.onMessage(message);
      if (this.#socket !== socket) return;
    }
  }

  #welcome() {
    this.#clearTimer();
    this.#since = this.env.now();
    this.#enter("online");
  }

  #lost(code = 0) {
    if (code === NOT_ALLOWED) return this.refuse();
    this.#drop();
    if (this.phase === "online" && this.env.now() - this.#since >= STABLE_MS) this.attempt = 0;
    const step = Math.min(LAST_STEP_MS, FIRST_STEP_MS * 2 ** this.attempt);
    const wait = Math.round(this.env.random() * step);
    this.attempt += 1;
    this.retryAt = this.env.now() + wait;
    this.#setTimer(wait, () => this.connect());
    return this.#enter("waiting");
  }

  #drop() {
    this.#clearTimer();
    const socket = this.#socket;
    this.#socket = null;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  #enter(phase) {
    this.phase = phase;
    this.options.onPhase();
  }

  #setTimer(ms, action) {
    this.#clearTimer();
    this.#timer = this.env.setTimeout(action, ms);
  }

  #clearTimer() {
    this.env.clearTimeout(this.#timer);
  }
}

/** The messages of one frame: an object, or an array of them; nothing when it cannot be read. */
function parse(text) {
  try {
    const value = JSON.parse(text);
    return (Array.isArray(value) ? value : [value]).filter(
      (item) => typeof item?.type === "string",
    );
  } catch {
    console.warn("arp: a frame that is not JSON was passed over");
    return [];
  }
}

function browserEnv() {
  return {
    WebSocket: globalThis.WebSocket,
    setTimeout: globalThis.setTimeout.bind(globalThis),
    clearTimeout: globalThis.clearTimeout.bind(globalThis),
    random: Math.random,
    now: () => Date.now(),
  };
}
