/**
 * Changes in the list of chats, streamed from the server, so that the lists of several tabs agree. A stream that
 * ends is opened again after a random part of 1, 2, 4, 8 or 16 s. Changes in between are not reported: load the
 * list again in `opened`. A hidden page holds no stream, because a browser allows a server only six connections
 * for all its tabs. Source: server.md, "Chats".
 */

import type { ChatListener, ChatRow } from "./session_types.js";
import { readEvents } from "../transport/sse_parser.js";

type Request = (path: string, init?: RequestInit) => Promise<Response>;

const MOST_STEPS = 4;

/** Report changes to a listener until the signal is aborted. */
export async function watchChats(request: Request, listener: ChatListener, signal: AbortSignal): Promise<void> {
  for (let step = 0; !signal.aborted; step = Math.min(step + 1, MOST_STEPS)) {
    await change(signal, () => !isHidden());
    const hidden = new AbortController();
    const ended = AbortSignal.any([signal, hidden.signal]);
    void change(ended, isHidden).then(() => hidden.abort());
    try {
      const response = await request("/_api/chat-events", { cache: "no-store", signal: ended });
      listener.opened?.();
      step = 0;
      await readEvents(response.body as ReadableStream<Uint8Array>, ({ event, data }) => {
        if (ended.aborted) return;
        if (event === "chat") listener.chat?.(JSON.parse(data) as ChatRow);
        else if (event === "removed") listener.removed?.((JSON.parse(data) as { id: string }).id);
      });
    } catch {
      // The loop opens the stream again, unless the watch has ended.
    }
    const wasHidden = hidden.signal.aborted;
    hidden.abort();
    if (signal.aborted) return;
    listener.closed?.();
    if (!wasHidden) await pause(1000 * 2 ** step * Math.random(), signal);
  }
}

const isHidden = () => globalThis.document?.visibilityState === "hidden";

/** Wait until a condition on the page's visibility is true, or the signal is aborted. */
function change(signal: AbortSignal, isSo: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    if (isSo() || signal.aborted) return resolve();
    const done = new AbortController();
    const check = () => {
      if (!isSo() && !signal.aborted) return;
      done.abort();
      resolve();
    };
    globalThis.document?.addEventListener("visibilitychange", check, { signal: done.signal });
    signal.addEventListener("abort", check, { signal: done.signal });
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
