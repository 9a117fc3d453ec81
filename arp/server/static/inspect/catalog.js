/** The catalog: the tools of the app's Tool Agent, by category, and which runtimes can be used. */

import { el, setText } from "./dom.js";
import { parseJson } from "./json.js";

const REFRESH_MS = 5000;
const NO_AGENT = "This app has no Tool Agent. App(tools=ToolAgent(…)) gives it one.";

/** Tools by their category, in the order in which the server lists them. */
export function byCategory(tools) {
  const groups = new Map();
  for (const tool of tools) groups.set(tool.category, [...(groups.get(tool.category) ?? []), tool]);
  return [...groups];
}

export class Catalog {
  #shown = "";
  #at = 0;
  #open = new Set();

  /**
   * @param ask gets a path beside the page; resolves to the answer's status and JSON.
   * @param box is where the catalog is drawn.
   */
  constructor(ask, box) {
    this.ask = ask;
    this.box = box;
  }

  /** Reads the catalog again if that is due. */
  async refresh(now) {
    if (now - this.#at < REFRESH_MS) return;
    this.#at = now;
    try {
      const [tools, runtimes] = await Promise.all([this.ask("tools"), this.ask("health/runtimes")]);
      if (tools.status === 200) this.#draw(tools.value.tools, runtimes.value.runtimes ?? []);
      else this.#say(tools.status === 401 ? "This server wants a token." : NO_AGENT);
    } catch {
      this.#say("The catalog cannot be read now.");
    }
  }

  /** Lets the next `refresh` read at once. */
  due() {
    this.#at = -Infinity;
  }

  #say(text) {
    this.#shown = "";
    this.box.replaceChildren(el("h2", {}, "Catalog"), el("p", { class: "empty" }, text));
  }

  #draw(tools, runtimes) {
    const key = JSON.stringify([tools, runtimes]);
    if (key === this.#shown) return;
    this.#shown = key;
    const groups = byCategory(tools).map(([name, rows]) =>
      el("section", {}, el("h3", { dir: "auto" }, name), ...rows.map((tool) => this.#tool(tool))),
    );
    const none = el("p", { class: "empty" }, "There is no tool yet.");
    this.box.replaceChildren(
      el("h2", {}, "Catalog"),
      ...(groups.length ? groups : [none]),
      el("section", {}, el("h3", {}, "Runtimes"), el("ul", {}, ...runtimes.map(runtimeRow))),
    );
  }

  #tool(tool) {
    const schema = el("pre", { class: "schema" });
    const box = el(
      "details",
      { class: "tool", "data-tool": tool.tool_id },
      el(
        "summary",
        {},
        el("code", {}, tool.tool_id),
        " ",
        el("span", { dir: "auto" }, tool.name),
        " ",
        el("span", { class: tool.status === "active" ? "good" : "muted" }, tool.status),
      ),
      el("p", { dir: "auto" }, tool.description),
      schema,
    );
    box.open = this.#open.has(tool.tool_id);
    const load = async () => {
      if (!box.open) return this.#open.delete(tool.tool_id);
      this.#open.add(tool.tool_id);
      const { value } = await this.ask(`tools/${encodeURIComponent(tool.tool_id)}/schema`);
      setText(schema, JSON.stringify(value, null, 2));
    };
    box.addEventListener("toggle", load);
    return box;
  }
}

function runtimeRow({ type, available, error }) {
  return el(
    "li",
    {},
    el("span", { class: `dot ${available ? "good" : "warn"}` }),
    " ",
    el("code", {}, type),
    available ? " can be used" : ` cannot be used: ${error}`,
  );
}

/** Asks the server for JSON, in the name of this tab's token. */
export function asker(baseURI, token) {
  return async (path) => {
    const headers = token() ? { authorization: `Bearer ${token()}` } : {};
    const answer = await fetch(new URL(path, baseURI), { headers, cache: "no-store" });
    const value = await answer.text().then(parseJson).catch(() => ({}));
    return { status: answer.status, value };
  };
}
