/** The choice of agents, where an app has several; loaded by those that have. */

import type { Wire } from "@agent-rendering/core";
import { html, nothing, type TemplateResult } from "lit";

import type { Translate } from "../../base/context.js";
import { freshId } from "../../base/values.js";
import css from "./agent_picker.css?inline";
import { adopter } from "../styles.js";

const name = freshId("agent");

const adopt = adopter(css);

/**
 * One radio button for each agent, with its description; `current` is the name of the one that is chosen, and
 * `root` the document or shadow root in which it stands.
 */
export function agentPicker(
  root: Node,
  agents: readonly Wire.Workflow[],
  current: string | undefined,
  t: Translate,
  choose: (name: string) => void,
): TemplateResult {
  adopt(root);
  return html`<fieldset class="arp-agents">
    <legend>${t("chooseAgent")}</legend>
    ${agents.map(
      (agent) => html`<label class="arp-agent">
        <input type="radio" name=${name} .value=${agent.name} .checked=${agent.name === current} @change=${() => choose(agent.name)} />
        <span><bdi>${agent.title}</bdi>${agent.description ? html`<small dir="auto">${agent.description}</small>` : nothing}</span>
      </label>`,
    )}
  </fieldset>`;
}
