/**
 * Keeps one session connected: opens links, comes back when one is lost, by another way if need be.
 *
 * Theory of operation. Phases: `idle` (not asked to connect), `connecting` (a link is opening, or
 * the server has not answered our hello yet), `online`, `waiting` (until the next try) and `refused`
 * (the server does not want us: only the user tries again). Each try goes through the transports in
 * turn, those first that have worked; a link that never was leads to the next at once. The wait
 * before try n is a random part of 1, 2, 4, 8, 16 s, so that clients of a server that went away do
 * not all come back at once. A connection that held for a while starts the steps anew.
 */

import type { Address, Transport } from "./address.js";
import type { ErrorPayload, RendererHello, RendererMessage } from "./generated/wire.js";
import type { Link, Loss, Surroundings } from "./link.js";
import { openEvents } from "./sse_link.js";
import { openSocket } from "./websocket_link.js";

export type Phase = "idle" | "connecting" | "online" | "waiting" | "refused";

/** Where the connection stands. */
export interface LinkState {
  readonly phase: Phase;
  readonly transport: Transport | null;
  /** Tries since a connection held. */
  readonly attempt: number;
  /** When the next try is due, in ms since the epoch; while `waiting`. */
  readonly retryAt: number | null;
  /** How the last connection ended. */
  readonly reason: string | null;
  /** Why the server does not want us; while `refused`. */
  readonly refusal: ErrorPayload | null;
}

export interface DriverOptions {
  readonly address: Address;
  readonly world: Surroundings;
  /** A random number from 0 to 1. */
  readonly random: () => number;
  readonly maxAttempts: number;
  /** The first message of a link: asked for at each try, since it names the place to go on from. */
  hello(): RendererHello;
  token(): string | null | Promise<string | null>;
  /** Takes a frame. */
  frame(text: unknown): void;
  changed(state: LinkState): void;
}

const FIRST_STEP_MS = 1000;
const LAST_STEP_MS = 16_000;
const HANDSHAKE_MS = 10_000;
const STABLE_MS = 5000;
/** A connection that was silent for so long may be dead without our knowing… */
const QUIET_MS = 20_000;
/** … and has so long to say anything. */
const PROBE_MS = 5000;

const IDLE: LinkState = {
  phase: "idle",
  transport: null,
  attempt: 0,
  retryAt: null,
  reason: null,
  refusal: null,
};

/** The links of one session, one at a time. */
export class Driver {
  state: LinkState = IDLE;
  readonly #options: DriverOptions;
  #link: Link | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #probe: ReturnType<typeof setTimeout> | undefined;
  #heard = 0;
  /** Counts links, so that what an old one tells late is passed over. */
  #round = 0;
  #untried: Transport[] = [];
  readonly #worked = new Set<Transport>();
  #since = 0;
  /** Another transport failed in this try in a way that may pass. */
  #mayReturn = false;

  constructor(options: DriverOptions) {
    this.#options = options;
  }

  /** Connects now, unless there is a link already. */
  connect(): void {
    if (this.#link !== null || this.state.phase === "connecting") return;
    const { transports } = this.#options.address;
    this.#untried = [...transports].sort((a, b) => Number(this.#worked.has(b)) - Number(this.#worked.has(a)));
    this.#mayReturn = false;
    this.#open();
  }

  /** Ends the connection for good; `connect` begins a new one. */
  disconnect(): void {
    this.#drop();
    this.#enter({ ...IDLE });
  }

  /** Drops the link and comes back at once: the next hello decides what is told. */
  restart(): void {
    if (this.state.phase === "idle") return;
    this.#drop();
    this.#enter({ phase: "idle" });
    this.connect();
  }

  /** Drops the link and comes back after a wait. */
  lose(reason: string): void {
    this.#lost({ reason });
  }

  /** The server does not want us. */
  refuse(refusal: ErrorPayload): void {
    this.#drop();
    this.#enter({ phase: "refused", refusal, reason: refusal.error, retryAt: null });
  }

  /** The server has answered our hello. */
  welcome(): void {
    const { transport } = this.state;
    if (transport === null || this.state.phase === "online") return;
    clearTimeout(this.#timer);
    this.#worked.add(transport);
    this.#since = Date.now();
    this.#enter({ phase: "online", retryAt: null, reason: null, refusal: null });
  }

  /**
   * The machine woke up or the network is back: a wait ends, and a connection that may have died
   * unseen is asked; it has a few seconds to say anything.
   *
   * @param ask Sends something that the server answers.
   */
  wake(ask: () => void): void {
    if (this.state.phase === "waiting") this.connect();
    const isQuiet = Date.now() - this.#heard > QUIET_MS;
    if (this.state.phase !== "online" || this.#probe !== undefined || !isQuiet) return;
    this.#probe = setTimeout(() => this.restart(), PROBE_MS);
    ask();
  }

  /** Sends if the session is up; `false` if it is not, and then nothing has been sent. */
  send(message: RendererMessage): boolean {
    if (this.state.phase !== "online" || this.#link === null) return false;
    try {
      this.#link.send(message);
      return true;
    } catch (error) {
      this.#lost({ reason: String(error) });
      return false;
    }
  }

  /** Whether the link can take another hello, and acknowledgements. */
  get isSocket(): boolean {
    return this.#link?.isSocket ?? false;
  }

  #open(): void {
    const transport = this.#untried.shift();
    if (transport === undefined) return;
    const round = ++this.#round;
    this.#enter({ phase: "connecting", transport, retryAt: null });
    this.#setTimer(HANDSHAKE_MS, () =>
      this.#lost({ reason: "no answer to our hello", unavailable: true }),
    );
    const isOurs = () => round === this.#round;
    const begin = (token: string | null) => {
      if (!isOurs()) return;
      const { address, world, hello } = this.#options;
      const open = transport === "websocket" ? openSocket : openEvents;
      this.#link = open({
        address,
        world,
        token,
        hello: hello(),
        listener: {
          frame: (text) => {
            if (!isOurs()) return;
            this.#answered();
            this.#options.frame(text);
          },
          alive: () => isOurs() && this.#answered(),
          lost: (loss) => isOurs() && this.#lost(loss),
        },
      });
      if (this.#link === null) this.#lost({ reason: "no WebSocket here", unavailable: true });
    };
    const failed = (error: unknown) => isOurs() && this.#lost({ reason: String(error) });
    try {
      const token = this.#options.token();
      if (token instanceof Promise) token.then(begin).catch(failed);
      else begin(token);
    } catch (error) {
      failed(error);
    }
  }

  #answered(): void {
    this.#heard = Date.now();
    clearTimeout(this.#probe);
    this.#probe = undefined;
  }

  #lost({ reason, unavailable, refusal }: Loss): void {
    const { phase, attempt } = this.state;
    this.#drop();
    if (unavailable && phase === "connecting" && this.#untried.length > 0) {
      this.#mayReturn ||= refusal === undefined;
      this.#enter({ reason });
      this.#open();
      return;
    }
    if (refusal !== undefined && !(unavailable && this.#mayReturn)) {
      this.refuse(refusal);
      return;
    }
    const held = phase === "online" && Date.now() - this.#since >= STABLE_MS;
    const tries = held ? 0 : attempt;
    if (tries >= this.#options.maxAttempts) {
      this.#enter({ ...IDLE, reason, attempt: tries });
      return;
    }
    const step = Math.min(LAST_STEP_MS, FIRST_STEP_MS * 2 ** Math.min(tries, 10));
    const wait = Math.round(this.#options.random() * step);
    this.#setTimer(wait, () => this.connect());
    this.#enter({ phase: "waiting", reason, attempt: tries + 1, retryAt: Date.now() + wait });
  }

  #drop(): void {
    this.#round += 1;
    clearTimeout(this.#timer);
    this.#answered();
    const link = this.#link;
    this.#link = null;
    link?.close();
  }

  #enter(change: Partial<LinkState>): void {
    this.state = { ...this.state, ...change };
    this.#options.changed(this.state);
  }

  #setTimer(ms: number, action: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(action, ms);
  }
}
