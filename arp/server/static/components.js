/**
 * From a component to its view. A view has a `node` and `update(component, open)`; it reads props
 * with care, since nothing that an agent sends may break the page: what a view cannot draw becomes
 * a quiet card. What this page does not know shows its fallback, else its readable text.
 */

import { arrange, asList, asText, el, icon, uniqueId } from "./dom.js";
import { FormView } from "./form.js";
import { Prose, codeBlock, plain } from "./prose.js";
import { ChoicesView, ConfirmView } from "./questions.js";
import { readable } from "./readable.js";
import { TableView } from "./table.js";

/** What this page draws itself, with versions, as its hello says. */
export const SUPPORTED = {
  "text": 1,
  "table": 1,
  "form": 1,
  "confirm": 1,
  "choices": 1,
  "status-card": 1,
  "group": 1,
};

const INPUTS = new Set(["form", "confirm", "choices", "group"]);

/** The place of one component: keeps its view while the type stays, and contains its failures. */
export class ComponentView {
  node = el("div", { class: "component" });
  #answers;
  #type = null;
  #view = null;
  #shown = null;

  /** `answers` is how input components answer; see answers.js. */
  constructor(answers) {
    this.#answers = answers;
  }

  /** Shows the component as it is now; `open` while its text may still grow. */
  update(component, open) {
    const same = this.#shown?.component === component && this.#shown.open === open;
    if (same && !INPUTS.has(component.type)) return;
    try {
      this.#draw(component, open);
    } catch (error) {
      // whatever the props were, the rest of the page goes on
      console.warn(`arp: ${component.type} could not be drawn:`, error);
      this.#view = this.#type = null;
      arrange(this.node, [quietCard("This part could not be shown.")]);
    }
    this.#shown = { component, open };
  }

  #draw(component, open) {
    if (this.#type !== component.type) {
      const View = Object.hasOwn(VIEWS, component.type) ? VIEWS[component.type] : UnknownView;
      this.#view = new View(this.#answers);
      this.#type = component.type;
    }
    this.#view.update(component, open);
    arrange(this.node, [this.#view.node]);
  }
}

/** Views of a list, by component id; elements of what stays are kept. */
export class ComponentList {
  #answers;
  #views = new Map();

  constructor(answers) {
    this.#answers = answers;
  }

  /** The elements of the components, in order; with `open`, the text of the last may still grow. */
  nodes(components, open = false) {
    const views = new Map();
    for (const [index, component] of components.entries()) {
      const view = this.#views.get(component.id) ?? new ComponentView(this.#answers);
      view.update(component, open && index === components.length - 1);
      views.set(component.id, view);
    }
    this.#views = views;
    return [...views.values()].map((view) => view.node);
  }
}

class TextView {
  #prose = new Prose();
  node = this.#prose.node;

  update({ props, type }, open) {
    const text = asText(props.content ?? props.text);
    if (type === "text" && props.format !== "markdown") arrange(this.node, [plain(text)]);
    else this.#prose.update(text, open);
  }
}

class CodeView {
  node = el("div");

  update({ props }) {
    const language = /^[a-z0-9+#-]{1,32}$/i.exec(asText(props.language))?.[0] ?? "";
    arrange(this.node, [codeBlock(asText(props.code), language)]);
  }
}

class StatusCard {
  node = el("section", { class: "card status" });

  update({ props }) {
    const status = ["success", "error", "warning"].includes(props.status) ? props.status : "info";
    const title = uniqueId("status");
    this.node.className = `card status ${status}`;
    this.node.setAttribute("aria-labelledby", title);
    const head = el(
      "h3",
      { id: title, dir: "auto" },
      icon(status),
      el("span", { class: "unseen" }, `${status}: `),
      el("span", {}, asText(props.title)),
    );
    const message = props.message && plain(props.message);
    this.node.replaceChildren(
      head,
      ...[message, ...asList(props.sections).map(section)].filter(Boolean),
    );
  }
}

function section({ label, content, style } = {}) {
  const kind = ["code", "error", "success"].includes(style) ? style : "default";
  const body =
    kind === "code"
      ? el("pre", { tabindex: "0" }, asText(content))
      : plain(content, `plain ${kind}`);
  return el("div", { class: "section" }, el("h4", { dir: "auto" }, asText(label)), body);
}

class GroupView {
  node = el("div");
  #list;

  constructor(answers) {
    this.#list = new ComponentList(answers);
  }

  update({ props }) {
    const gap = ["none", "small", "large"].includes(props.gap) ? props.gap : "medium";
    const direction = props.direction === "horizontal" ? "horizontal" : "vertical";
    this.node.className = `group ${direction} gap-${gap}`;
    arrange(this.node, this.#list.nodes(asList(props.children)));
  }
}

class UnknownView {
  node = el("div");
  #fallback = null;
  #answers;

  constructor(answers) {
    this.#answers = answers;
  }

  update(component, open) {
    if (!component.fallback) {
      const text = readable(component.props);
      arrange(this.node, [text ? plain(text) : quietCard("This part cannot be shown here.")]);
      return;
    }
    this.#fallback ??= new ComponentView(this.#answers);
    this.#fallback.update(component.fallback, open);
    arrange(this.node, [this.#fallback.node]);
  }
}

function quietCard(text) {
  return el("p", { class: "card quiet" }, text);
}

const VIEWS = {
  "text": TextView,
  "markdown": TextView,
  "code-block": CodeView,
  "status-card": StatusCard,
  "table": TableView,
  "form": FormView,
  "confirm": ConfirmView,
  "choices": ChoicesView,
  "group": GroupView,
};
