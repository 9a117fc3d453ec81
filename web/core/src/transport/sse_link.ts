/**
 * A link over server-sent events, with a POST request for each input. The hello is in the query, the token in a header.
 * Inputs are posted one after the other, so that they arrive in order. Source: protocol.md 6.
 */

import type { RendererHello, RendererMessage } from "../protocol/generated/wire.js";
import {
  answerOf,
  authorization,
  errorOf,
  isPassing,
  lossByClose,
  type Link,
  type Loss,
  type Opening,
} from "./link.js";
import { readEvents } from "./sse_parser.js";

/** Silence after which the stream is dead: the server sends a comment or a ping at least every 15 s. */
const SILENCE_MS = 25_000;
/** Delay of a timer that shows that the machine slept. */
const LATE_MS = 1000;

/** Open a stream that begins with a hello. */
export function openEvents({ address, hello, token, world, listener }: Opening): Link {
  const abort = new AbortController();
  let queue = Promise.resolve();
  let watchdog: ReturnType<typeof setTimeout> | undefined;
  const lose = (loss: Loss) => {
    if (abort.signal.aborted) return;
    close();
    listener.lost(loss);
  };
  const close = () => {
    clearTimeout(watchdog);
    abort.abort();
  };
  const watch = () => {
    const due = Date.now() + SILENCE_MS;
    watchdog = setTimeout(() => {
      if (Date.now() - due > LATE_MS)
        watch(); // the machine slept; there may be data that has not been read yet
      else lose({ reason: "the server fell silent" });
    }, SILENCE_MS);
  };
  const restartTimer = () => {
    clearTimeout(watchdog);
    if (abort.signal.aborted) return;
    watch();
    listener.alive();
  };
  const headers = authorization(token);

  const read = async () => {
    const response = await world.fetch(streamUrl(address.events, hello()), {
      headers: { ...headers, Accept: "text/event-stream" },
      cache: "no-store",
      signal: abort.signal,
    });
    const isStream = /^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "");
    if (!response.ok || !isStream || response.body === null) return lose(await lossOf(response));
    restartTimer();
    await readEvents(
      response.body,
      ({ event, data }) => {
        if (abort.signal.aborted) return;
        if (event === "close") lose(lossByEvent(data));
        else listener.frame(data);
      },
      restartTimer,
    );
    return lose({ reason: "the server ended the stream" });
  };
  read().catch((error: unknown) => lose({ reason: String(error), unavailable: watchdog === undefined }));

  const post = async (message: RendererMessage) => {
    if (abort.signal.aborted) return;
    try {
      const response = await world.fetch(address.input, {
        method: "POST",
        headers: { ...headers, "Content-Type": "application/json" },
        body: JSON.stringify(message),
        signal: abort.signal,
      });
      const frame = await answerOf(response, (message as { id?: string }).id ?? null);
      if (frame === null) lose({ reason: `HTTP ${response.status}` });
      else if (!abort.signal.aborted) listener.frame(frame);
    } catch (error) {
      lose({ reason: String(error) });
    }
  };

  return {
    isSocket: false,
    send(message) {
      queue = queue.then(() => post(message));
    },
    close,
  };
}

/** Return the loss from the last event of the server, which has the code and reason of a WebSocket's close. */
function lossByEvent(data: string): Loss {
  try {
    const { code, reason } = JSON.parse(data) as { code: number; reason?: string };
    return lossByClose(code, reason ?? "");
  } catch {
    return { reason: "the server ended the stream" };
  }
}

/** Return the URL of a stream, without the feature `frame-ack`: a POST does not say which renderer sent it. */
export function streamUrl(url: string, hello: RendererHello): string {
  const { capabilities = {} } = hello;
  const features = (capabilities.features ?? []).filter((name) => name !== "frame-ack");
  const helloBody = JSON.stringify({ ...hello, capabilities: { ...capabilities, features } });
  const bytes = new TextEncoder().encode(helloBody);
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  const query = new URLSearchParams({
    hello: text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, ""),
  });
  return `${url}${url.includes("?") ? "&" : "?"}${query}`;
}

/** Return the loss for an answer that is not a stream. */
async function lossOf(response: Response): Promise<Loss> {
  const error = await errorOf(response);
  const { status } = response;
  // A missing agent or a missing right is the same over any transport.
  const isFinal = status === 401 || status === 403 || error.detail === "workflow";
  const loss = { reason: error.error, unavailable: !isFinal };
  return isPassing(response) ? loss : { ...loss, refusal: error };
}
