/**
 * The agents of an app: the list, the agent of this chat, and the choice among them.
 *
 * Theory of operation. The list comes with the capabilities of the agent side, or from a request, if the capabilities
 * have none. The agent of the chat is the one that the session names; before the session names one, the agent that was
 * chosen here; otherwise the first of the list.
 */

import type { ArpClient, Status, Wire } from "@agent-rendering/core";

import type { Translate } from "../base/context.js";
import { emit } from "../base/element.js";
import type { agentPicker } from "./composer/agent_picker.js";

type Agent = Wire.Workflow;

/** The chat around the choice. */
interface AgentsHost extends HTMLElement {
  requestUpdate(): void;
  /** Begin a new chat with an agent. */
  choose(name: string): void;
}

export class Agents {
  /** Name of the agent that was last chosen here. A session that has not loaded yet will have this agent. */
  chosen: string | null | undefined;
  #list: readonly Agent[] = [];
  /** The agent of this chat: `undefined` until it is known, `null` if the chosen agent does not exist. */
  #current: Agent | null | undefined;
  /** Title of the app. */
  #title = "";
  #client: ArpClient | null = null;
  /** The capabilities that the list was made from. */
  #capabilities: Status["capabilities"] | undefined;
  /** Draws the choice; loaded if there are several agents. */
  #picker: typeof agentPicker | null = null;
  readonly #host: AgentsHost;

  constructor(host: AgentsHost) {
    this.#host = host;
  }

  /** Introduction of this chat's agent; for an unknown agent, the title of the app. */
  get introduction(): Pick<Agent, "title"> & Partial<Agent> {
    return this.#current ?? { title: this.#title };
  }

  /** Follow the status of a client: read the list when the agent side has introduced itself, and find the agent. */
  update(client: ArpClient): void {
    this.#client = client;
    const status = client.store.status.get();
    const { capabilities, phase } = status;
    if (capabilities !== this.#capabilities && (phase === "online" || phase === "refused")) {
      this.#capabilities = capabilities;
      void this.#load(client, capabilities);
    }
    this.#identify(status);
  }

  /** Drop the client. The list is read again with the first status of the next client. */
  clear(): void {
    this.#client = null;
    this.#capabilities = undefined;
  }

  /** Return the choice to draw, `undefined` if there is none. */
  draw(t: Translate): unknown {
    const choose = (name: string) => this.#host.choose(name);
    return this.#picker?.(this.#host.getRootNode(), this.#list, this.#current?.name, t, choose);
  }

  async #load(client: ArpClient, capabilities: Status["capabilities"]): Promise<void> {
    let { title = "", workflows: agents = [] }: { title?: string; workflows?: readonly Agent[] } = capabilities ?? {};
    // A server that does not list its agents in its hello is asked for them; a server of the draft has no list.
    if (agents.length === 0) {
      const listed = await client.sessions.workflows().catch(() => []);
      title = listed[0]?.app_title ?? "";
      agents = listed.map(({ name, title = name, description = "", suggestions = [] }) => ({
        name,
        title,
        description,
        suggestions,
      }));
    }
    if (client !== this.#client) return; // the list of a previous client must not replace that of the current one
    this.#list = agents;
    this.#title = title || (agents[0]?.title ?? "");
    this.#current = undefined;
    this.#identify(client.store.status.get());
    if (agents.length > 1) this.#picker = (await import("./composer/agent_picker.js")).agentPicker;
    this.#host.requestUpdate();
  }

  /** Find the agent of the chat, and report it if it has changed. */
  #identify({ workflow: named }: Status): void {
    const [first] = this.#list;
    if (first === undefined) return;
    const name = named ?? this.chosen ?? first.name;
    const known = this.#list.find((agent) => agent.name === name);
    const agent = known ?? (named ? { name: named, title: named } : null); // an old chat's agent may be gone
    if (this.#current !== undefined && agent?.name === this.#current?.name) return;
    this.#current = agent;
    emit(this.#host, "arp-introduced", { title: this.#title, agent, agents: this.#list });
    this.#host.requestUpdate();
  }
}
