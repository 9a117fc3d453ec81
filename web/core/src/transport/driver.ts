/**
 * Keeps one session connected: opens links, comes back when one is lost, by another way if need be.
 *
 * Theory of operation. Phases: `idle` (not asked to connect), `connecting` (a link is opening, or
 * the server has not answered our hello yet), `online`, `waiting` (until the next try) and `refused`
 * (the server does not want us: only the user tries again). After the last try it is `idle` with a
 * `reason`, until something gives hope: the network is back, somebody looks at the page. Each try goes through the transports in
 * turn, those first that have worked; a link that never was leads to the next at once. The wait
 * before try n is a random part of 1, 2, 4, 8, 16 s, so that clients of a server that went away do
 * not all come back at once. A connection that held for a while starts the steps again.
 */

import type { Address, Transport } from "./address.js";
import type { ErrorPayload, RendererHello, RendererMessage } from "../protocol/generated/wire.js";
import { newId } from "../protocol/new_id.js";
import type { Link, Listener, Loss, Surroundings } from "./link.js";
import { openSocket } from "./websocket_link.js";

export type Phase = "idle" | "connecting" | "online" | "waiting" | "refused";

/** The state of the connection. */
export interface LinkState {
  readonly phase: Phase;
  readonly transport: Transport | null;
  /** Tries since a connection held. */
  readonly attempt: number;
  /** When the next try is due, in ms since the epoch; while `waiting`. */
  readonly retryAt: number | null;
  /** How the last connection ended; `null` while `idle` by the user's own wish. */
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
  /** The first message of a link: made for each try, since it names the place to continue from. */
  hello(): RendererHello;
  token(): string | null | Promise<string | null>;
  /** Whether the server answers pings. */
  answers(): boolean;
  /** Takes a frame. */
  frame(text: unknown): void;
  changed(state: LinkState): void;
}

const FIRST_STEP_MS = 1000;
const LAST_STEP_MS = 16_000;
/** The number of tries after which the steps get no longer. */
const LONGEST_AT = 4;
const HANDSHAKE_MS = 10_000;
const STABLE_MS = 5000;
/** A server that answers pings is asked for a sign of life after a silence of so long. */
const ASK_MS = 10_000;
/** Without one for so long the link is dead. */
const ANSWER_MS = 10_000;
const MOST_ANSWER_MS = 80_000;
/** A timer that is so much too late means nothing about the server: the machine slept, or the page is in the background. */
const LATE_MS = 2000;
/** A connection that was silent for so long when the machine woke up may be dead without our knowing. */
const QUIET_MS = 30_000;
/** Then somebody waits in front of it. */
const WAKE_MS = 3000;

const IDLE: LinkState = {
  phase: "idle",
  transport: null,
  attempt: 0,
  retryAt: null,
  reason: null,
  refusal: null,
};

/** The links of one session, one at a time. */
export interface Driver {
  readonly state: LinkState;
  /** Whether the server has answered the hello of this link; until then nothing is sent. */
  readonly isWelcome: boolean;
  /** Whether the link can say which renderer displayed what (feature `frame-ack`). */
  readonly isSocket: boolean;
  /** Connects now, unless there is a link already. */
  connect(): void;
  /** Ends the connection for good; `connect` begins a new one. */
  disconnect(): void;
  /** Drops the link, if there is one, and comes back at once. */
  restart(): void;
  /**
   * Says the hello of another session: on the link that is open if `canStay`, else on a new one. In both cases
   * the phase stays `online` as long as nothing fails. After a refusal it connects again.
   */
  turn(canStay: boolean): void;
  /** Drops the link and comes back after a wait, or not at all if the server does not want us. */
  lose(loss: Loss): void;
  /** The server has answered our hello. */
  welcome(): void;
  /** Ends a wait, also the one after the last try. */
  resume(): void;
  /**
   * The machine woke up or the network is back: a wait ends, and a connection that was silent for
   * long may have died unseen, so the server is pinged; a link to one without pings is replaced by a new one.
   */
  wake(): void;
  /** The network is gone, as the browser says; tries continue, since a server on this machine needs none. */
  unplug(): void;
  /** Sends if the session is up; `false` if it is not, and then nothing has been sent. */
  send(message: RendererMessage): boolean;
}

/** Loaded only where WebSocket does not get through. */
const sseOpener = async () => (await import("./sse_link.js")).openEvents;

/** Makes a driver; it connects when asked to. */
export function createDriver(options: DriverOptions): Driver {
  let state = IDLE;
  let link: Link | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** Counts links, so that late events of an old one are ignored. */
  let round = 0;
  let untried: Transport[] = [];
  /** Another transport failed in this try in a way that may pass. */
  let mayReturn = false;
  const worked = new Set<Transport>();
  let onlineSince = 0;
  let isWelcome = false;
  let receivedAt = 0;
  /** A ping was sent, and nothing has come. */
  let isPinged = false;
  /** How long that may take, if it is more than `ANSWER_MS`: twice as long after each link that died so, until one answers. */
  let patience = ANSWER_MS / 2;

  const enter = (change: Partial<LinkState>) => {
    state = { ...state, ...change };
    options.changed(state);
  };

  const after = (ms: number, action: () => void) => {
    clearTimeout(timer);
    timer = setTimeout(action, ms);
  };

  const drop = () => {
    round += 1;
    clearTimeout(timer);
    const old = link;
    link = null;
    isWelcome = false;
    old?.close();
  };

  const lose = ({ reason, unavailable = false, refusal }: Loss) => {
    const { phase, attempt } = state;
    drop();
    if (unavailable && phase === "connecting" && untried.length > 0) {
      mayReturn ||= refusal === undefined;
      void open();
    } else if (refusal !== undefined && !(unavailable && mayReturn)) {
      enter({ phase: "refused", reason, refusal, retryAt: null });
    } else {
      // A server that answered can be reached: however often such links break, that alone is no reason to give up.
      const held = Date.now() - onlineSince >= STABLE_MS;
      const tries = phase !== "online" ? attempt : held ? 0 : Math.min(attempt, LONGEST_AT);
      if (tries >= options.maxAttempts) return enter({ ...IDLE, reason });
      const step = Math.min(LAST_STEP_MS, FIRST_STEP_MS * 2 ** tries);
      const wait = Math.round(options.random() * step);
      after(wait, connect);
      enter({ phase: "waiting", reason, attempt: tries + 1, retryAt: Date.now() + wait });
    }
  };

  const awaitAnswer = () => after(HANDSHAKE_MS, () => lose({ reason: "no answer", unavailable: true }));

  const open = async () => {
    const transport = untried.shift() as Transport;
    const ours = ++round;
    const { address, world, hello } = options;
    enter({ phase: state.phase === "online" ? "online" : "connecting", transport, retryAt: null });
    awaitAnswer();
    const listener: Listener = {
      frame(text) {
        listener.alive();
        if (ours === round) options.frame(text);
      },
      alive() {
        receivedAt = Date.now();
        isPinged = false;
      },
      lost(loss) {
        if (ours === round) lose(loss);
      },
    };
    try {
      const token = await options.token();
      const opener = transport === "websocket" ? openSocket : await sseOpener();
      if (ours !== round) return;
      link = opener({ address, world, token, listener, hello });
    } catch (error) {
      listener.lost({ reason: String(error), unavailable: true });
    }
  };

  const connect = () => {
    if (state.phase !== "connecting" && state.phase !== "online") begin();
  };

  const begin = () => {
    const known = (transport: Transport) => Number(worked.has(transport));
    untried = [...options.address.transports].sort((a, b) => known(b) - known(a));
    mayReturn = false;
    void open();
  };

  const restart = () => {
    const { phase } = state;
    if (phase !== "online" && phase !== "connecting") return;
    drop();
    state = { ...state, phase: "idle" };
    connect();
  };

  const send = (message: RendererMessage) => {
    if (!isWelcome || link === null) return false;
    try {
      link.send(message);
      return true;
    } catch (error) {
      lose({ reason: String(error) });
      return false;
    }
  };

  /** Waits for a silence, and asks then; one timer for all frames, of which there may be many. */
  const listen = () => {
    const silent = Math.abs(Date.now() - receivedAt); // clocks are set back, too
    if (silent >= ASK_MS) ask(Math.max(ANSWER_MS, patience));
    else after(ASK_MS - silent, listen);
  };

  const ask = (wait: number) => {
    const due = Date.now() + wait;
    isPinged = true;
    if (!send({ type: "ping", v: 1, id: newId() })) return;
    after(wait, () => {
      if (!isPinged) {
        patience = ANSWER_MS / 2;
        listen();
      } else if (Math.abs(Date.now() - due) > LATE_MS) ask(wait);
      else {
        // One large message on a slow way is silence too: it must get through some time.
        patience = Math.min(MOST_ANSWER_MS, 2 * patience);
        lose({ reason: "no sign of life" });
      }
    });
  };

  const turn = (canStay: boolean) => {
    const { phase } = state;
    if (phase === "refused") connect();
    else if (phase !== "online") restart();
    else if (canStay && isWelcome && link?.isSocket) {
      isWelcome = false;
      awaitAnswer();
      link.send(options.hello());
    } else {
      drop();
      begin();
    }
  };

  const isLost = () => state.phase === "waiting" || (state.phase === "idle" && state.reason !== null);

  return {
    get state() {
      return state;
    },
    get isWelcome() {
      return isWelcome;
    },
    get isSocket() {
      return link?.isSocket ?? false;
    },
    connect,
    disconnect() {
      drop();
      enter(IDLE);
    },
    restart,
    turn,
    lose,
    welcome() {
      const { phase, transport } = state;
      if (isWelcome || link === null || transport === null) return;
      clearTimeout(timer);
      isWelcome = true;
      worked.add(transport);
      if (phase !== "online") {
        onlineSince = Date.now();
        enter({ phase: "online", reason: null, refusal: null });
      }
      if (options.answers()) listen();
    },
    resume() {
      if (isLost()) connect();
    },
    wake() {
      if (isLost()) connect();
      else if (Date.now() - receivedAt <= QUIET_MS) return;
      else if (state.phase === "online" && options.answers()) ask(WAKE_MS);
      else restart();
    },
    unplug() {
      if (state.phase === "online" || state.phase === "connecting") lose({ reason: "offline" });
    },
    send,
  };
}
