/** The choice of agents. Loaded if the app has several. */

import type { Wire } from "@agent-rendering/core";
import { html, nothing, type TemplateResult } from "lit";

import type { Translate } from "../../base/context.js";
import { freshId } from "../../base/values.js";
import css from "./agent_picker.css?inline";
import { adopter } from "../styles.js";

const name = freshId("agent");

const adopt = adopter(css);

/**
 * Return a radio button for each agent, with its description.
 *
 * @param root The document or shadow root around it, which gets the styles.
 * @param current Name of the selected agent.
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
