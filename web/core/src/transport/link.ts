/**
 * One way to the agent side and back, from its opening to its loss. A link knows frames and how it
 * was lost, but no message type; after `close` it reports nothing any more.
 */

import type { Address } from "./address.js";
import {
  INVALID_MESSAGE,
  PERMISSION_DENIED,
  RESOURCE_LIMIT,
  SESSION_NOT_FOUND,
  UNAUTHENTICATED,
} from "../protocol/generated/codes.js";
import type { ErrorPayload, RendererHello, RendererMessage } from "../protocol/generated/wire.js";
import { readFrame } from "../protocol/shape.js";

export interface Link {
  /** Whether it can say which renderer displayed what (feature `frame-ack`). */
  readonly isSocket: boolean;
  send(message: RendererMessage): void;
  close(): void;
}

/** What a link reports. */
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

/** What the platform provides; each can be replaced. */
export interface Surroundings {
  readonly WebSocket?: (new (url: string, protocols?: string) => WebSocket) | undefined;
  readonly fetch: typeof fetch;
}

export interface Opening {
  readonly address: Address;
  /** Made when it is sent: what it takes is not needed to begin. */
  readonly hello: () => RendererHello;
  /** A token, if there is one. */
  readonly token: string | null;
  readonly world: Surroundings;
  readonly listener: Listener;
}

/** The header that lets us in. */
export function authorization(token: string | null): { Authorization?: string } {
  return token === null ? {} : { Authorization: `Bearer ${token}` };
}

/** Close codes after which coming back makes no sense, as errors. */
const REFUSALS = new Map<number, number>([
  [1000, SESSION_NOT_FOUND],
  [1003, INVALID_MESSAGE],
  [1008, PERMISSION_DENIED],
  [1009, RESOURCE_LIMIT],
]);

/** What it means that the server closed a connection. */
export function lossByClose(code: number, reason: string): Loss {
  const problem = reason || `closed with ${code}`;
  const refused = REFUSALS.get(code);
  return refused === undefined ? { reason: problem } : { reason: problem, refusal: { error: problem, code: refused } };
}

const CODES = new Map<number, number>([
  [401, UNAUTHENTICATED],
  [403, PERMISSION_DENIED],
  [413, RESOURCE_LIMIT],
]);

/** The error in an HTTP answer; one is made where it has none. */
export async function errorOf(response: Response): Promise<ErrorPayload> {
  const { status } = response;
  const { messages } = readFrame(await response.text());
  const problem = messages.find((message) => message.type === "error");
  return problem?.payload ?? { error: `HTTP ${status}`, code: CODES.get(status) ?? INVALID_MESSAGE };
}

/** Another try may meet another answer. */
export function isPassing({ status }: Response): boolean {
  return status >= 500 || status === 408 || status === 425 || status === 429;
}

/**
 * The answer to a POST, as a frame. Where the server sent none, one is made: an error
 * that names the input. `null` if it is worth trying again.
 */
export async function answerOf(response: Response, id: string | null): Promise<string | null> {
  if (response.ok) return response.text();
  const error = await errorOf(response);
  if (isPassing(response) && !error.id) return null;
  return JSON.stringify({ type: "error", v: 1, payload: { ...error, id: error.id ?? id } });
}
