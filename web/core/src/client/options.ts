/** The options of a client, and their defaults. */

import type { Transport } from "../transport/address.js";
import { nextFrame, type Schedule } from "./cells.js";
import { VERSIONS } from "../protocol/generated/tables.js";
import type { RendererHello, RendererLimits, Viewport } from "../protocol/generated/wire.js";
import type { Surroundings } from "../transport/link.js";
import type { Storage } from "./outbox.js";

export interface ArpClientOptions {
  /** `ws://HOST/_arp/v1`, or `http://HOST` with the prefix of a mount; in a page also relative. */
  url: string;
  /** The session; without it the server makes a new one. */
  sessionId?: string | null;
  /** The agent of a session that is made, where an app has several; else its first. */
  workflow?: string | null;
  /** Tries in a row that the server did not answer before it gives up; without it, it does not. */
  maxReconnectAttempts?: number;
  /** Takes this transport alone; else WebSocket, and server-sent events where that fails. */
  transport?: Transport | "auto";
  token?: string | null | (() => string | null | Promise<string | null>);
  /** What this renderer draws: types, with the versions that it knows. All of the catalog if absent. */
  components?: { [type: string]: number };
  limits?: RendererLimits;
  viewport?: Viewport;
  locale?: string;
  timeZone?: string;
  theme?: string;
  /** What it can do besides: with `line-pause` the queue is paused after a turn that failed, until `goOn()` or the next message. */
  features?: readonly string[];
  /** Keeps unsent inputs over a reload; the tab's own storage if absent. */
  storage?: Storage | null;
  /** When listeners are notified: at the next animation frame if absent. */
  schedule?: Schedule;
  WebSocket?: Surroundings["WebSocket"];
  fetch?: typeof fetch;
  /** A random number from 0 to 1, for the waits between tries. */
  random?: () => number;
}

/** Options with nothing left open. */
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

/** Fills in the defaults. */
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

/** What this renderer is. */
export function rendererHello({ renderer, sessionId }: Resolved): RendererHello {
  const { components = VERSIONS, features = [], workflow, limits, viewport, theme, locale, timeZone } = renderer;
  // What the browser has to be asked for costs as much as drawing a page.
  const own = locale && timeZone ? renderer : Intl.DateTimeFormat().resolvedOptions();
  // What is undefined is not sent.
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

/** This tab's storage; `null` where there is none or it is forbidden. */
function tabStorage(): Storage | null {
  try {
    return (globalThis as { sessionStorage?: Storage }).sessionStorage ?? null;
  } catch {
    return null;
  }
}
