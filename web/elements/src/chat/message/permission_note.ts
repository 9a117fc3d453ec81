/** A permission request in the conversation: one line with its state. It is answered in its card at the message box. */

import { questionState, type Component } from "@agent-rendering/core";
import { html, type TemplateResult } from "lit";

import type { ArpContext } from "../../base/context.js";
import { visible } from "../../base/values.js";
import { icon } from "../icons.js";

export function permissionNote(component: Component, { t }: ArpContext): TemplateResult {
  const { title, answer } = component.props;
  const state = questionState(component);
  const word =
    state === "open"
      ? t("permissionWaits")
      : state === "answered"
        ? t(isYes(answer) ? "allowed" : "denied")
        : t(state ?? "cancelled");
  return html`<p class="arp-permission-note" data-state=${state ?? ""}>${icon("shield")}<span dir="auto">${visible(String(title ?? ""))}</span> <strong>${word}</strong></p>`;
}

function isYes(answer: unknown): boolean {
  if (typeof answer === "object" && answer !== null) return (answer as { action?: unknown }).action === "confirm";
  return answer === true || answer === "confirm";
}
