/**
 * Activity of the agent: tool calls and thinking, each in a fold. Only the reader opens or closes a fold; a redraw
 * never does. The duration of a step is the one that the agent side reports. Without a report, it is known only if this
 * page has seen the step begin.
 */

import type { ToolRun, TurnState } from "@agent-rendering/core";
import { html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";

import type { ArpContext } from "../../base/context.js";
import "./elapsed.js";
import { icon } from "../icons.js";
import { StepSpans, type Step } from "@agent-rendering/core/timeline";
import { number, visible, withoutCodes } from "../../base/values.js";
import { sentence } from "../../base/wrong.js";

export class Activity {
  readonly #spans = new StepSpans();

  /** Record which steps of a turn have begun or ended. */
  look(turn: TurnState): void {
    this.#spans.record(turn);
  }

  /** Return a group of steps. `isOpen` is true for the last block of a running turn: its last step may still run. */
  draw(steps: readonly Step[], turn: TurnState, context: ArpContext, isOpen: boolean): TemplateResult {
    const items = repeat(
      steps,
      ({ key }) => key,
      (step, at) => this.#step(step, turn, context, isOpen && at === steps.length - 1),
    );
    return html`<div class="arp-activity" role="group" aria-label=${context.t("activity", { count: steps.length })}>${items}</div>`;
  }

  #step(step: Step, turn: TurnState, context: ArpContext, isLast: boolean): TemplateResult {
    return step.kind === "tool"
      ? this.#tool(step.run, step.key, turn, context)
      : this.#thinking(step.text, context, isLast && !turn.final);
  }

  #tool(run: ToolRun, key: string, turn: TurnState, context: ArpContext): TemplateResult {
    void import("./tool_detail.js").catch(() => undefined); // tried again with the next step
    const { tool, ok, error } = run;
    const { t } = context;
    const name = visible(tool);
    // A turn that ended without a result of the tool was interrupted. Otherwise its spinner would turn for ever.
    const state = ok === null ? (turn.final ? "interrupted" : "running") : ok ? "done" : "failed";
    const words = { running: "active", done: "done", failed: "failed", interrupted: "interrupted" } as const;
    return html`<details class="arp-step" data-state=${state}>
      <summary>
        <span class="arp-step-sign" aria-hidden="true">${state === "done" ? icon("check") : state === "running" ? html`<span class="arp-spinner"></span>` : icon("alert")}</span>
        <code dir="auto">${name}</code> <span class="arp-step-state">${t(words[state])}</span>
        ${this.#time(key, context, run.durationMs)} ${state === "running" ? progressOf(run, context) : nothing}
      </summary>
      <div class="arp-step-body">
        <arp-tool-detail .run=${run} .context=${context}></arp-tool-detail>
        ${error ? html`<p class="arp-bad" dir="auto">${visible(sentence(withoutCodes(error)))}</p>` : nothing}
      </div>
    </details>`;
  }

  #thinking(text: string, context: ArpContext, isRunning: boolean): TemplateResult {
    const { t } = context;
    return html`<details class="arp-step arp-thought" data-state=${isRunning ? "running" : "done"}>
      <summary>
        <span class="arp-step-sign" aria-hidden="true">${isRunning ? html`<span class="arp-spinner"></span>` : icon("thought")}</span>
        <span>${t(isRunning ? "thinking" : "thought")}</span> ${this.#time("thinking", context)}
      </summary>
      <div class="arp-step-body"><p class="arp-plain" dir="auto">${text}</p></div>
    </details>`;
  }

  #time(key: string, context: ArpContext, durationMs: number | null = null): unknown {
    const span = typeof durationMs === "number" ? { since: 0, until: durationMs } : this.#spans.of(key);
    if (span === undefined) return nothing;
    return html`<arp-elapsed class="arp-caption" .since=${span.since} .until=${span.until} .t=${context.t}></arp-elapsed>`;
  }
}

/** Return the progress of a tool: its text, and a bar if the total is known. Screen readers do not announce it. */
function progressOf({ tool, progress }: ToolRun, { t }: ArpContext): unknown {
  if (!progress) return nothing;
  const { done, total } = progress;
  const progressText = visible(withoutCodes(progress.text ?? ""));
  const isMeasured = number(done) !== null && number(total) !== null && (total as number) > 0;
  const count = isMeasured
    ? t("stepsDone", { done: done as number, all: total as number })
    : number(done) === null
      ? ""
      : t.number(done as number);
  return html`<span class="arp-step-progress">
    ${progressText === "" ? nothing : html`<span class="arp-step-said" dir="auto" title=${progressText}>${progressText}</span>`}
    ${
      isMeasured
        ? html`<progress class="arp-bar" aria-label=${t("toolRunning", { tool: visible(tool) })} aria-valuetext=${count} max=${total as number} .value=${Math.min(done as number, total as number)}></progress>`
        : nothing
    }
    ${count === "" ? nothing : html`<span class="arp-step-count" aria-hidden=${isMeasured ? "true" : nothing}>${count}</span>`}
  </span>`;
}
