/**
 * The control plane over one WebSocket at a time, for as long as the page lives.
 *
 * Theory of operation. Phases: `connecting` (socket opening, or `initialize` not answered yet),
 * `online`, `waiting` (until the next try) and `refused` (the server wants another token: only the
 * user tries again). A lost socket fails what was asked on it; whoever follows a session asks again
 * when the phase is `online`. Waits are random parts of 1, 2, 4, 8, 16 s.
 */

import { parseJson } from "./json.js";

const FIRST_STEP_MS = 1000;
const LAST_STEP_MS = 16000;
const HANDSHAKE_MS = 10000;
/** A session that held this long starts the steps anew. */
const STABLE_MS = 5000;
const NOT_ALLOWED = 1008;
const UNAUTHENTICATED = "UNAUTHENTICATED";

/** An answer that says no; `name` is the project's name of the error. */
export class Refused extends Error {
  constructor(error) {
    super(error.message);
    this.code = error.code;
    this.reason = error.data?.name ?? "";
  }
}

/** The socket went away before the answer came. */
export class Lost extends Error {}

export class Rpc {
  phase = "connecting";
  #socket = null;
  #asked = new Map();
  #number = 0;
  #attempt = 0;
  #since = 0;
  #timer = null;

  /**
   * @param options url; token() gives what `initialize` shows, or null; onPhase(); onNotice(method,
   *   params) gets each notification.
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
    const socket = new this.env.WebSocket(this.options.url);
    this.#socket = socket;
    socket.onopen = () => this.#begin();
    socket.onmessage = (event) => this.#receive(event.data);
    socket.onclose = (event) => this.#lost(event.code);
    this.#enter("connecting");
  }

  /** Calls a method; fails with `Refused`, or with `Lost` when the socket goes away. */
  call(method, params = {}) {
    if (!this.#socket || this.phase !== "online") return Promise.reject(new Lost(method));
    return this.#ask(method, params);
  }

  #ask(method, params) {
    this.#number += 1;
    const id = this.#number;
    this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    return new Promise((resolve, reject) => this.#asked.set(id, { resolve, reject }));
  }

  async #begin() {
    const token = this.options.token();
    try {
      await this.#ask("initialize", token ? { token } : {});
    } catch (error) {
      if (error instanceof Lost) return;
      this.#drop();
      if (error.reason === UNAUTHENTICATED) this.#enter("refused");
      else this.#wait();
      return;
    }
    this.#clearTimer();
    this.#since = this.env.now();
    this.#enter("online");
  }

  #receive(text) {
    let told;
    try {
      told = parseJson(text);
    } catch {
      return;
    }
    if (told.method) {
      this.options.onNotice(told.method, told.params);
      return;
    }
    const asked = this.#asked.get(told.id);
    this.#asked.delete(told.id);
    if (told.error) asked?.reject(new Refused(told.error));
    else asked?.resolve(told.result);
  }

  #lost(code = 0) {
    const held = this.phase === "online" && this.env.now() - this.#since >= STABLE_MS;
    if (held) this.#attempt = 0;
    this.#drop();
    if (code === NOT_ALLOWED) this.#enter("refused");
    else this.#wait();
  }

  #wait() {
    const step = Math.min(LAST_STEP_MS, FIRST_STEP_MS * 2 ** this.#attempt);
    this.#attempt += 1;
    this.#setTimer(Math.round(this.env.random() * step), () => this.connect());
    this.#enter("waiting");
  }

  #drop() {
    this.#clearTimer();
    const socket = this.#socket;
    this.#socket = null;
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
    const asked = [...this.#asked.values()];
    this.#asked.clear();
    for (const { reject } of asked) reject(new Lost("the connection was lost"));
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

function browserEnv() {
  return {
    WebSocket: globalThis.WebSocket,
    setTimeout: globalThis.setTimeout.bind(globalThis),
    clearTimeout: globalThis.clearTimeout.bind(globalThis),
    random: Math.random,
    now: () => Date.now(),
  };
}
