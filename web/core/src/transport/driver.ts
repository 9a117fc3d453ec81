/**
 * Keeps one session connected: opens links, and reconnects after a loss, over another transport if necessary.
 *
 * Theory of operation. There is one link at a time. The phases are:
 *
 * - `idle`: not asked to connect. After the last try it is `idle` with a `reason`, and a sign of hope (the
 *   network is back, the page is visible again) starts the tries again.
 * - `connecting`: a link is opening, or the server has not answered our hello yet.
 * - `online`: the server has answered. It stays `online` while another session is opened.
 * - `waiting`: until the next try.
 * - `refused`: the server refuses this renderer, so only the user tries again.
 *
 * What each command does in each phase is in the table at the end. Three events change the phase as well: `welcome`,
 * `lose` and `disconnect`.
 *
 * A try goes through all transports; those that have worked are first. If a link was never open, the next transport
 * follows at once. The wait before try n is a random part of 1, 2, 4, 8, 16 s, so that the clients of a server that went
 * away do not all return at once. A connection that held for a while starts the steps again.
 */

import type { Address, Transport } from "./address.js";
import type { ErrorPayload, RendererHello, RendererMessage } from "../protocol/generated/wire.js";
import type { Link, Listener, Loss, Surroundings } from "./link.js";
import { createSignsOfLife } from "./signs_of_life.js";
import { openSocket } from "./websocket_link.js";

export type Phase = "idle" | "connecting" | "online" | "waiting" | "refused";

/** The state of the connection. */
export interface LinkState {
  readonly phase: Phase;
  readonly transport: Transport | null;
  /** Tries since a connection held. */
  readonly attempt: number;
  /** Time of the next try in ms since the epoch, while `waiting`. */
  readonly retryAt: number | null;
  /** How the last connection ended; `null` if the user has disconnected or never connected. */
  readonly reason: string | null;
  /** Why the server refuses this renderer, while `refused`. */
  readonly refusal: ErrorPayload | null;
}

export interface DriverOptions {
  readonly address: Address;
  readonly world: Surroundings;
  /** A random number from 0 to 1. */
  readonly random: () => number;
  readonly maxAttempts: number;
  /** Return the first message of a link; it names the place to continue from, so each try needs a new one. */
  hello(): RendererHello;
  token(): string | null | Promise<string | null>;
  /** Whether the server answers pings. */
  answers(): boolean;
  /** Receive a frame. */
  frame(text: unknown): void;
  changed(state: LinkState): void;
}

const FIRST_STEP_MS = 1000;
const LAST_STEP_MS = 16_000;
/** Number of tries after which the steps do not get longer. */
const LONGEST_AT = 4;
/** Time for the answer to a hello. */
const HANDSHAKE_MS = 10_000;
/** Time after which a connection has held. */
const STABLE_MS = 5000;
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
  /** Connect now, unless there is already a link. */
  connect(): void;
  /** End the connection; only `connect` begins a new one. */
  disconnect(): void;
  /**
   * Send the hello of another session: on the open link if `canStay`, otherwise on a new one. In both cases the
   * phase stays `online` as long as nothing fails. After a refusal, connect again.
   */
  turn(canStay: boolean): void;
  /** Drop the link, and connect again after a wait unless the server refuses this renderer. */
  lose(loss: Loss): void;
  /** Record that the server has answered our hello. */
  welcome(): void;
  /** End a wait, also the pause after the last try. */
  resume(): void;
  /**
   * Handle a machine that woke up, or a network that is back. A wait ends. A connection that was silent for long may
   * have died unseen, so the server is pinged; if it does not answer pings, the link is replaced by a new one.
   */
  wake(): void;
  /** Handle the loss of the network. Tries continue, because a server on this machine needs none. */
  unplug(): void;
  /** Send a message if the server has answered our hello; returns `false` if nothing was sent. */
  send(message: RendererMessage): boolean;
}

/** Loaded only if WebSocket does not get through. */
const sseOpener = async () => (await import("./sse_link.js")).openEvents;

/** Create a driver; it connects when asked to. */
export function createDriver(options: DriverOptions): Driver {
  let state = IDLE;
  let link: Link | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** Counts links, so that late events of an old link are ignored. */
  let round = 0;
  let untried: Transport[] = [];
  /** Whether another transport failed in this try in a way that may pass. */
  let mayReturn = false;
  const worked = new Set<Transport>();
  let onlineSince = 0;
  let isWelcome = false;

  const enter = (change: Partial<LinkState>) => {
    state = { ...state, ...change };
    options.changed(state);
  };

  // -- the timer: of the handshake, of the next try, or of the signs of life; never two at once ----------------------

  const after = (ms: number, action: () => void) => {
    clearTimeout(timer);
    timer = setTimeout(action, ms);
  };

  const awaitAnswer = () => after(HANDSHAKE_MS, () => lose({ reason: "no answer", unavailable: true }));

  // -- one link ------------------------------------------------------------------------------------------------------

  const open = async (phase: Phase = "connecting") => {
    const transport = untried.shift() as Transport;
    const ours = ++round;
    enter({ phase, transport, retryAt: null });
    awaitAnswer();
    const listener: Listener = {
      frame(text) {
        record();
        if (ours === round) options.frame(text);
      },
      alive: record,
      lost(loss) {
        if (ours === round) lose(loss);
      },
    };
    try {
      const token = await options.token();
      const opener = transport === "websocket" ? openSocket : await sseOpener();
      if (ours !== round) return; // meanwhile the link was dropped; a new one would never be closed
      link = opener({ ...options, token, listener });
    } catch (error) {
      listener.lost({ reason: String(error), unavailable: true });
    }
  };

  const send = (message: RendererMessage) => {
    try {
      if (isWelcome && link) {
        link.send(message);
        return true;
      }
    } catch (error) {
      lose({ reason: String(error) });
    }
    return false;
  };

  const drop = () => {
    // From here on, events of the old link are ignored. Otherwise its late loss would end the next link.
    round += 1;
    clearTimeout(timer);
    const old = link;
    link = null;
    isWelcome = false;
    old?.close();
  };

  // -- transitions ---------------------------------------------------------------------------------------------------

  const begin = (phase?: Phase) => {
    const known = (transport: Transport) => Number(worked.has(transport));
    untried = [...options.address.transports].sort((a, b) => known(b) - known(a));
    mayReturn = false;
    void open(phase);
  };

  const replace = (phase?: Phase) => {
    drop();
    begin(phase);
  };

  const lose = ({ reason, unavailable, refusal }: Loss) => {
    const { phase, attempt } = state;
    drop();
    if (unavailable && phase === "connecting" && untried.length > 0) {
      mayReturn ||= !refusal;
      void open();
    } else if (refusal && !(unavailable && mayReturn)) {
      // After this only the user tries again. So it must not happen if the link was never open and another transport
      // failed for a reason that may pass: that transport may work next time.
      enter({ phase: "refused", reason, refusal, retryAt: null });
    } else {
      // A server that has answered can be reached. Links to it that break soon, however often, must not lead to the last
      // try; they only make the waits longer.
      const held = Date.now() - onlineSince >= STABLE_MS;
      const tries = phase !== "online" ? attempt : held ? 0 : Math.min(attempt, LONGEST_AT);
      if (tries >= options.maxAttempts) return enter({ ...IDLE, reason });
      const step = Math.min(LAST_STEP_MS, FIRST_STEP_MS * 2 ** tries);
      const wait = Math.round(options.random() * step);
      after(wait, begin);
      enter({ phase: "waiting", reason, attempt: tries + 1, retryAt: Date.now() + wait });
    }
  };

  const [record, listen, isQuiet, ask] = createSignsOfLife(after, send, lose);

  const offline = () => lose({ reason: "offline" });

  /** Begin again after the last try. Without a reason the user does not want a link, and a wake-up must not open one. */
  const again = () => {
    if (state.reason !== null) begin();
  };

  /** Check a link that may have died while the machine slept. */
  const check = () => {
    if (!isQuiet()) return;
    if (state.phase === "online" && options.answers()) ask();
    else replace();
  };

  const turn = (canStay: boolean) => {
    if (canStay && isWelcome && link?.isSocket) {
      isWelcome = false;
      awaitAnswer();
      link.send(options.hello());
    } else replace("online");
  };

  /** Return a command from its row of the table: the transition for each phase. In other phases it does nothing. */
  const when = (byPhase: Partial<Record<Phase, () => void>>) => () => byPhase[state.phase]?.();

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
    connect: when({ idle: begin, waiting: begin, refused: begin }),
    turn: (canStay) => when({ connecting: replace, online: () => turn(canStay), refused: begin })(),
    resume: when({ idle: again, waiting: begin }),
    wake: when({ idle: again, waiting: begin, connecting: check, online: check }),
    unplug: when({ connecting: offline, online: offline }),
    disconnect() {
      drop();
      enter(IDLE);
    },
    lose,
    welcome() {
      const { phase, transport } = state;
      if (isWelcome || !link) return;
      clearTimeout(timer);
      isWelcome = true;
      worked.add(transport as Transport);
      if (phase !== "online") {
        onlineSince = Date.now();
        enter({ phase: "online", reason: null, refusal: null });
      }
      if (options.answers()) listen();
    },
    send,
  };
}
