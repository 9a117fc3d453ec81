/**
 * Upload of inputs with files. Each input is one HTTP request, because files do not fit into a message on the
 * socket. The part `message` of the request is the input as JSON. Source: protocol.md 6.
 */

import type { Input } from "../protocol/generated/wire.js";
import { answerOf, authorization } from "../transport/link.js";
import type { Attachment } from "./outbox.js";

export interface Upload {
  readonly url: string;
  readonly token: string | null;
  readonly message: Input;
  readonly files: readonly Attachment[];
  readonly signal: AbortSignal;
  /** Called with the part that was sent, from 0 to 1. */
  progress(part: number): void;
}

/** Sends a request and reports the part that was sent; returns the response. */
type Send = (url: string, init: RequestInit, progress: (part: number) => void) => Promise<Response>;

/**
 * Post an input with its files. Rejects if the network fails.
 *
 * @returns The answer as a frame; `null` if the request should be tried again.
 */
export async function upload(
  { url, token, message, files, signal, progress }: Upload,
  fetcher: typeof fetch,
): Promise<string | null> {
  const body = new FormData();
  body.append("message", JSON.stringify(message));
  for (const { part, file } of files) body.append(part, file, file.name);
  const init = { method: "POST", body, headers: authorization(token), signal };
  return answerOf(await sender(fetcher)(url, init, progress), message.id ?? null);
}

/** Return a function that sends with XMLHttpRequest, which reports progress, or with `fetch` outside of browsers. */
function sender(fetcher: typeof fetch): Send {
  if (typeof XMLHttpRequest === "undefined") return (url, init) => fetcher(url, init);
  return (url, { method = "POST", body, headers, signal }, progress) =>
    new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open(method, url);
      for (const [name, value] of Object.entries(headers ?? {})) request.setRequestHeader(name, value);
      request.upload.onprogress = ({ loaded, total }) => progress(total ? loaded / total : 0);
      request.onload = () => resolve(new Response(request.responseText || null, { status: request.status }));
      request.onerror = request.onabort = () => reject(new TypeError("the upload broke off"));
      signal?.addEventListener("abort", () => request.abort());
      request.send(body as XMLHttpRequestBodyInit);
    });
}
