/** An input of the reader as a bubble. */

import { fileAddress, type FileRef, type Json, type JsonObject, type Wire } from "@agent-rendering/core";
import { html, nothing, type TemplateResult } from "lit";

import { showsRecording, type ArpContext } from "../../base/context.js";
import { list, text as plain, visible } from "../../base/values.js";
import { fileChip } from "./file_chip.js";
import "./fold.js";
import { isLong } from "./fold.js";

/** Return the bubble of an input: its text and files, or the choice or form fields that were sent. */
export function inputBubble(input: Pick<Wire.InputEcho, "input_type" | "data">, context: ArpContext): TemplateResult {
  const { data } = input;
  const text = textOf(input, context);
  const files = Array.isArray(data.files) ? (data.files as unknown as FileRef[]) : [];
  return html`${
    text === ""
      ? nothing
      : html`<div class=${isTyped(input) ? "arp-bubble" : "arp-bubble arp-chosen"} dir="auto">${isLong(text) ? html`<arp-fold .text=${text} .t=${context.t}></arp-fold>` : text}</div>`
  }
    ${
      files.length === 0
        ? nothing
        : html`<ul class="arp-files">
          ${files.map((file) => sentFile(file, context))}
        </ul>`
    }`;
}

/** Types that the server delivers as pictures, after it has checked the content. */
const PICTURE = /^image\/(?:png|jpeg|gif|webp)$/;

/** Return a sent file: a picture if this page may load it, otherwise a chip. */
function sentFile(file: FileRef, context: ArpContext): TemplateResult {
  const { client, t } = context;
  const [name, mime] = [String(file.name), String(file.mime)];
  if (
    PICTURE.test(mime) &&
    client !== null &&
    client.sessionId !== null &&
    !showsRecording(client) &&
    isOfThisServer(client.address.base)
  ) {
    const source = fileAddress(client.address.base, client.sessionId, { sha256: String(file.sha256), name });
    return html`<li class="arp-sent-picture"><arp-picture .source=${source} .alt=${visible(name)} .context=${context}></arp-picture></li>`;
  }
  return html`<li>${fileChip({ name, size: Number(file.size), type: mime }, t)}</li>`;
}

/** Return whether an address belongs to the server of this page. A picture from there needs no consent. */
function isOfThisServer(address: string): boolean {
  return new URL(address).origin === new URL(document.baseURI).origin;
}

function isTyped({ input_type }: Pick<Wire.InputEcho, "input_type">): boolean {
  return input_type === "text" || input_type === "file" || input_type === "voice";
}

function textOf({ input_type: type, data }: Pick<Wire.InputEcho, "input_type" | "data">, { t }: ArpContext): string {
  switch (type) {
    case "voice":
      return plain(data.transcript);
    case "selection":
      return list(data.selected).map(plain).join(", ");
    case "form_submit":
      return fields(data.fields, t("details"));
    case "action":
      return data.action === "confirm" ? t("confirm") : data.action === "deny" ? t("deny") : plain(data.action);
    case "navigate":
      return plain(data.route);
    default:
      return plain(data.text);
  }
}

function fields(value: Json | undefined, otherwise: string): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return otherwise;
  const fieldNames = Object.entries(value as JsonObject).map(([name, given]) => `${name}: ${plain(given)}`);
  return fieldNames.join("\n") || otherwise;
}
