/** What the user said or did, as a bubble. */

import type { FileRef, Json, JsonObject, Wire } from "@agent-rendering/core";
import { html, nothing, type TemplateResult } from "lit";

import type { ArpContext } from "../context.js";
import { fileChip } from "./file_chip.js";

/** The bubble of an input: its text and files, or what was chosen or filled in. */
export function inputBubble(input: Pick<Wire.InputEcho, "input_type" | "data">, context: ArpContext): TemplateResult {
  const { data } = input;
  const text = textOf(input, context);
  const files = Array.isArray(data.files) ? (data.files as unknown as FileRef[]) : [];
  return html`${text === ""
      ? nothing
      : html`<div class=${isTyped(input) ? "arp-bubble" : "arp-bubble arp-chosen"} dir="auto">${text}</div>`}
    ${files.length === 0
      ? nothing
      : html`<ul class="arp-files">
          ${files.map((file) => html`<li>${fileChip({ name: String(file.name), size: Number(file.size), type: String(file.mime) }, context.t)}</li>`)}
        </ul>`}`;
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

function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

function plain(value: Json | undefined): string {
  if (value == null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
