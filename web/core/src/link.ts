/**
 * One way to the agent side and back, from its opening to its loss. A link knows frames and how it
 * was lost, nothing of what they say; after `close` it tells nothing any more.
 */

import type { Address } from "./address.js";
import type { ErrorPayload, RendererHello, RendererMessage } from "./generated/wire.js";

export interface Link {
  /** Whether it can say who displayed what (feature `frame-ack`), and take another hello. */
  readonly isSocket: boolean;
  send(message: RendererMessage): void;
  close(): void;
}

/** What a link tells. */
export interface Listener {
  /** A frame came. */
  frame(text: unknown): void;
  /** Bytes came that are no frame: the other side lives. */
  alive(): void;
  lost(loss: Loss): void;
}

/** How a link ended. */
export interface Loss {
  readonly reason: string;
  /** It never was; another transport may be tried. */
  readonly unavailable?: boolean;
  /** Why coming back makes no sense. */
  readonly refusal?: ErrorPayload;
}

/** What the world around gives; each can be replaced. */
export interface Surroundings {
  readonly WebSocket?: (new (url: string, protocols?: string) => WebSocket) | undefined;
  readonly fetch: typeof fetch;
}

export interface Opening {
  readonly address: Address;
  readonly hello: RendererHello;
  /** A token, if there is one. */
  readonly token: string | null;
  readonly world: Surroundings;
  readonly listener: Listener;
}

/** The header that lets us in. */
export function authorization(token: string | null): { Authorization?: string } {
  return token === null ? {} : { Authorization: `Bearer ${token}` };
}
