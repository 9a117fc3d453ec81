/**
 * A link: one connection to the agent side, from its opening to its loss. It transports frames and does not know the
 * types of messages. After `close` it reports nothing.
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
  /** Whether it is a WebSocket, over which a renderer can acknowledge displayed frames (feature `frame-ack`). */
  readonly isSocket: boolean;
  send(message: RendererMessage): void;
  close(): void;
}

/** Receiver of the events of a link. */
export interface Listener {
  /** Receive a frame. */
  frame(text: unknown): void;
  /** Record bytes that are not a frame; they show that the other side is alive. */
  alive(): void;
  /** Handle the end of the link. */
  lost(loss: Loss): void;
}

/** How a link ended. */
export interface Loss {
  readonly reason: string;
  /** Whether the link was never open, so that another transport may work. */
  readonly unavailable?: boolean;
  /** Why it makes no sense to connect again. */
  readonly refusal?: ErrorPayload;
}

/** Functions of the platform; each can be replaced. */
export interface Surroundings {
  readonly WebSocket?: (new (url: string, protocols?: string) => WebSocket) | undefined;
  readonly fetch: typeof fetch;
}

/** Arguments for opening a link. */
export interface Opening {
  readonly address: Address;
  /** Return the hello; called when the hello is sent. */
  readonly hello: () => RendererHello;
  readonly token: string | null;
  readonly world: Surroundings;
  readonly listener: Listener;
}

/** Return the header with the token. */
export function authorization(token: string | null): { Authorization?: string } {
  return token === null ? {} : { Authorization: `Bearer ${token}` };
}

/** Error codes of the close codes after which it makes no sense to connect again. */
const REFUSALS: Readonly<Record<number, number>> = {
  1000: SESSION_NOT_FOUND,
  1003: INVALID_MESSAGE,
  1008: PERMISSION_DENIED,
  1009: RESOURCE_LIMIT,
};

/** Return the loss for a connection that the server closed. */
export function lossByClose(code: number, reason: string): Loss {
  const problem = reason || `closed with ${code}`;
  const refused = REFUSALS[code];
  return refused === undefined ? { reason: problem } : { reason: problem, refusal: { error: problem, code: refused } };
}

/** Error codes of HTTP answers without an error of the protocol. */
const CODES: Readonly<Record<number, number>> = {
  401: UNAUTHENTICATED,
  403: PERMISSION_DENIED,
  413: RESOURCE_LIMIT,
};

/** Return the error in an HTTP answer, or an error for its status if there is none. */
export async function errorOf(response: Response): Promise<ErrorPayload> {
  const { status } = response;
  const { messages } = readFrame(await response.text());
  const problem = messages.find((message) => message.type === "error");
  return problem?.payload ?? { error: `HTTP ${status}`, code: CODES[status] ?? INVALID_MESSAGE };
}

/** Return whether another try may get another answer. */
export function isPassing({ status }: Response): boolean {
  return status >= 500 || status === 408 || status === 425 || status === 429;
}

/**
 * Return the answer to a POST as a frame. If the server refused without a frame, it is an error with the id of the
 * input. `null` means that the input should be sent again.
 */
export async function answerOf(response: Response, id: string | null): Promise<string | null> {
  if (response.ok) return response.text();
  const error = await errorOf(response);
  if (isPassing(response) && !error.id) return null;
  return JSON.stringify({ type: "error", v: 1, payload: { ...error, id: error.id ?? id } });
}
