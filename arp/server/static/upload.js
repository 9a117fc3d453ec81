/** Inputs with files: one HTTP request, because a socket message could not hold them. */

/** Refused or lost; `payload` has the shape of an error message's. */
export class UploadFailed extends Error {
  constructor(payload) {
    super(payload.error);
    this.payload = payload;
  }
}

/**
 * Posts an input with its files; gives the agent side's acknowledgement `{id, turn_id?}`. The part
 * `message` is the input as JSON; each file is a part named `file`, or `fields.NAME` when it
 * belongs to a field of a form.
 */
export async function upload(url, token, message, files) {
  const body = new FormData();
  body.append("message", JSON.stringify(message));
  for (const { part, file } of files) body.append(part, file, file.name);
  let response;
  try {
    response = await fetch(url, {
      method: "POST",
      body,
      headers: token ? { Authorization: `Bearer ${token}` } : {},
    });
  } catch {
    throw new UploadFailed({ error: "The upload did not reach the server.", retryable: true });
  }
  const messages = [await response.json().catch(() => [])].flat();
  if (response.ok) return messages.find(({ type }) => type === "ack") ?? {};
  const refusal = messages.find(({ type }) => type === "error");
  throw new UploadFailed(
    refusal?.payload ?? { error: `The server refused the upload (${response.status}).` },
  );
}
