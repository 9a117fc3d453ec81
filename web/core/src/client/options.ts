/** The options of a client, and their defaults. */

import type { Transport } from "../transport/address.js";
import { nextFrame, type Schedule } from "./cells.js";
import { VERSIONS } from "../protocol/generated/tables.js";
import type { RendererHello, RendererLimits, Viewport } from "../protocol/generated/wire.js";
import type { Surroundings } from "../transport/link.js";
import type { Storage } from "./outbox.js";

export interface ArpClientOptions {
  /** `ws://HOST/_arp/v1`, or `http://HOST` with the prefix of a mount; in a page it may be relative. */
  url: string;
  /** Id of the session; without it the server creates a new session. */
  sessionId?: string | null;
  /** Name of the agent for a new session; the app's first agent if absent. */
  workflow?: string | null;
  /** Number of failed attempts in a row after which the client stops reconnecting; unlimited if absent. */
  maxReconnectAttempts?: number;
  /** The only transport to use. By default WebSocket, and server-sent events if that fails. */
  transport?: Transport | "auto";
  token?: string | null | (() => string | null | Promise<string | null>);
  /** Component types that this renderer draws, with the newest known version of each; the whole catalog if absent. */
  components?: { [type: string]: number };
  limits?: RendererLimits;
  viewport?: Viewport;
  locale?: string;
  timeZone?: string;
  theme?: string;
  /** Additional features. With `line-pause` the queue pauses after a failed turn until `goOn()` or the next message. */
  features?: readonly string[];
  /** Storage for unsent inputs, so that they survive a reload; the tab's `sessionStorage` if absent. */
  storage?: Storage | null;
  /** Schedules the notification of listeners; in the next animation frame if absent. */
  schedule?: Schedule;
  WebSocket?: Surroundings["WebSocket"];
  fetch?: typeof fetch;
  /** Returns a random number from 0 to 1, for the delays between attempts. */
  random?: () => number;
}

/** Options with all defaults filled in. */
export interface Resolved extends Surroundings {
  readonly url: string;
  readonly sessionId: string | null;
  readonly maxReconnectAttempts: number;
  readonly transport: Transport | "auto";
  readonly token: () => string | null | Promise<string | null>;
  readonly storage: Storage | null;
  readonly schedule: Schedule;
  readonly random: () => number;
  readonly renderer: ArpClientOptions;
}

const FEATURES = [
  "streaming",
  "input",
  "resume",
  "multi-surface",
  "file-upload",
  "frame-ack",
  "patch-append",
  "thinking",
  "batch",
  "branches",
  "tool-detail",
  "ping",
];

/** Return the options with their defaults filled in. */
export function resolveOptions(given: string | ArpClientOptions): Resolved {
  const options = typeof given === "string" ? { url: given } : given;
  const { url, sessionId = null, maxReconnectAttempts = Infinity, transport = "auto", token = null } = options;
  const { storage = tabStorage(), schedule = nextFrame, random = Math.random } = options;
  return {
    url,
    sessionId,
    maxReconnectAttempts,
    transport,
    token: typeof token === "function" ? token : () => token,
    storage,
    schedule,
    random,
    renderer: options,
    WebSocket: options.WebSocket ?? (globalThis.WebSocket as Surroundings["WebSocket"]),
    fetch: options.fetch ?? ((...args) => fetch(...args)),
  };
}

/** Return the first message of this renderer. */
export function rendererHello({ renderer, sessionId }: Resolved): RendererHello {
  const { components = VERSIONS, features = [], workflow, limits, viewport, theme, locale, timeZone } = renderer;
  // Creating a DateTimeFormat takes as long as drawing a page, so it is created only if something is missing.
  const own = locale && timeZone ? renderer : Intl.DateTimeFormat().resolvedOptions();
  // Fields that are undefined are not sent.
  return {
    type: "hello",
    v: 1,
    session_id: sessionId,
    workflow,
    capabilities: { components, features: [...FEATURES, ...features], limits },
    viewport,
    theme,
    locale: locale ?? own.locale,
    time_zone: timeZone ?? own.timeZone,
  } as RendererHello;
}

/** Return the storage of this tab, or `null` if there is none or access is forbidden. */
function tabStorage(): Storage | null {
  try {
    return (globalThis as { sessionStorage?: Storage }).sessionStorage ?? null;
  } catch {
    return null;
  }
}
