/** What the user said, as a bubble. */

import { asText, el, icon, uniqueId } from "./dom.js";
import { inputText } from "./readable.js";

const SPOKEN = new Set(["text", "file", "voice"]);

/** The user's own words, files or choice. */
export function bubble(input, source, files) {
  const text = asText(inputText(input, source));
  if (!text && !files.length) return null;
  const id = uniqueId("said");
  const spoken = SPOKEN.has(input.input_type) ? "" : "choice ";
  const attached = files.map((file) =>
    el(
      "li",
      {},
      icon("file"),
      el("span", { dir: "auto" }, asText(file.name)),
      el("span", { class: "hint" }, fileSize(file.size)),
    ),
  );
  return el(
    "article",
    { "class": `bubble ${spoken}`, "aria-labelledby": id },
    el("h2", { id, class: "unseen" }, "You said"),
    text && el("p", { class: "plain", dir: "auto" }, text),
    attached.length ? el("ul", { class: "files" }, attached) : null,
  );
}

/** A size for people: B, kB or MB. */
export function fileSize(bytes) {
  if (!(bytes >= 0)) return "";
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
