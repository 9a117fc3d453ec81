/** Tokens to nodes. Everything an agent wrote becomes a text node; addresses go through the list of what may be followed. */

import type { Token, Tokens } from "marked";
import type { ArpContext } from "../base/context.js";
import { leadsAway, linkTarget } from "../base/url.js";
import { decodeEntities } from "./entities.js";
import type { MathToken } from "./lexer.js";

/** What an element of ours in prose is given. */
interface Given {
  readonly [name: string]: unknown;
}

/** Deeper than this, text is shown without its marks. */
const DEEPEST = 40;
/** Wider tables nobody reads, and browsers need seconds to lay them out: they are shown as they were written. */
const MOST_COLUMNS = 100;
/** Longer text without any structure is cut until somebody wants it: laying it out takes long. */
const MOST_PLAIN = 60_000;
const SHOWN_PLAIN = 4_000;

/** Builds the nodes of one piece of prose. */
export class ProseBuilder {
  readonly #context: ArpContext;
  /** Depth of the last heading, so that no level is skipped. */
  heading = 0;
  /** Whether what is built is in a link, which can hold no other. */
  #isInLink = false;

  constructor(context: ArpContext) {
    this.#context = context;
  }

  /** The nodes of blocks. `isOpen`: the last of them is still being written. `from`: the first row or item of theirs that is made. */
  blocks(tokens: readonly Token[], isOpen = false, from = 0, depth = 0): Node[] {
    return tokens.flatMap(
      (token, at) => this.#block(token as Tokens.Generic, isOpen && at === tokens.length - 1, from, depth) ?? [],
    );
  }

  #block(token: Tokens.Generic, isOpen: boolean, from: number, depth: number): Node | Node[] | null {
    if (depth > DEEPEST) return text(token.raw);
    switch (token.type) {
      case "heading":
        return this.#headingOf(token as Tokens.Heading);
      case "paragraph":
        return element("p", { dir: "auto" }, this.inline(token.tokens));
      case "text": // in a tight list
        return token.tokens ? this.inline(token.tokens) : [text(decodeEntities(token.text as string))];
      case "checkbox":
        return this.#checkbox(token as Tokens.Checkbox);
      case "list":
        return this.#list(token as Tokens.List, isOpen, from, depth);
      case "blockquote":
        return element(
          "blockquote",
          { dir: directionOf(token.raw) },
          this.blocks(token.tokens ?? [], isOpen, 0, depth + 1),
        );
      case "code":
        return this.#code(token as Tokens.Code, isOpen);
      case "table":
        return this.#table(token as Tokens.Table, from);
      case "hr":
        return element("hr");
      case "math":
        return this.#math(token as MathToken);
      case "space":
      case "def":
        return null;
      default: // html, plain, and what we do not know
        return this.#plain(token.raw.replace(/\n+$/, ""));
    }
  }

  /** Text as it is; of a very long one the beginning, and all of it when it is wanted. */
  #plain(raw: string): HTMLElement {
    if (raw.length <= MOST_PLAIN) return element("p", { dir: "auto", class: "arp-plain" }, [text(raw)]);
    const made = element("p", { dir: "auto", class: "arp-plain" }, [text(`${raw.slice(0, SHOWN_PLAIN)}… `)]);
    const button = element("button", { type: "button", class: "arp-button arp-quiet" }, [
      text(this.#context.t("showAll")),
    ]);
    button.addEventListener("click", () => made.replaceChildren(text(raw)));
    made.append(button);
    return made;
  }

  #headingOf({ depth, tokens }: Tokens.Heading): HTMLElement {
    this.heading = Math.min(depth, this.heading + 1);
    return element(`h${Math.min(6, this.heading + 2)}`, { dir: "auto", class: `arp-h${depth}` }, this.inline(tokens));
  }

  #list({ raw, ordered, start, items, loose }: Tokens.List, isOpen: boolean, from: number, depth: number): HTMLElement {
    const made = element(ordered ? "ol" : "ul", { dir: directionOf(raw), ...(loose && { class: "arp-loose" }) });
    if (ordered && typeof start === "number" && start !== 1) made.setAttribute("start", String(start));
    made.append(
      ...items
        .slice(from)
        .map((item) =>
          element(
            "li",
            { dir: "auto", ...(item.task && { class: "arp-task" }) },
            this.blocks(item.tokens, isOpen && item === items.at(-1), 0, depth + 1),
          ),
        ),
    );
    return made;
  }

  #checkbox({ checked }: Tokens.Checkbox): Node[] {
    const { t } = this.#context;
    const mark = element("span", { class: "arp-check", "data-checked": String(checked), "aria-hidden": "true" });
    return [mark, element("bdi", { class: "arp-hidden" }, [text(`${t(checked ? "done" : "pending")}: `)])];
  }

  #code({ raw, text: code, lang = "", codeBlockStyle }: Tokens.Code, isOpen: boolean): HTMLElement {
    const isClosed = codeBlockStyle === "indented" || /\n {0,3}(?:`{3,}|~{3,})\s*$/.test(raw);
    return custom("arp-code", {
      code,
      language: /^[^\s{]*/.exec(decodeEntities(lang))?.[0] ?? "",
      unfinished: isOpen && !isClosed,
      context: this.#context,
    });
  }

  #table({ raw, header, rows, align }: Tokens.Table, from: number): HTMLElement {
    if (header.length > MOST_COLUMNS) return element("p", { class: "arp-plain" }, [text(raw)]);
    const { t } = this.#context;
    const cell = (tag: string, { tokens }: Tokens.TableCell, at: number) => {
      const side = align[at];
      return element(
        tag,
        { dir: "auto", ...(tag === "th" && { scope: "col" }), ...(side && { class: `arp-${side}` }) },
        this.inline(tokens),
      );
    };
    const head = element(
      "tr",
      {},
      header.map((one, at) => cell("th", one, at)),
    );
    const body = rows.slice(from).map((row) =>
      element(
        "tr",
        {},
        row.map((one, at) => cell("td", one, at)),
      ),
    );
    const table = element("table", { dir: directionOf(raw) }, [
      element("thead", {}, [head]),
      element("tbody", {}, body),
    ]);
    const label = t("rows", { count: rows.length });
    return element("div", { class: "arp-scroll", tabindex: "0", role: "group", "aria-label": label }, [table]);
  }

  #math({ text: source, display }: MathToken): HTMLElement {
    return custom("arp-math", { source, display });
  }

  /** The nodes of inline tokens. */
  inline(tokens: readonly Token[] = [], depth = 0): Node[] {
    return tokens.flatMap((token) => this.#inlineOf(token as Tokens.Generic, depth));
  }

  #inlineOf(token: Tokens.Generic, depth: number): Node | Node[] {
    const inner = () => (depth > DEEPEST ? [text(token.raw)] : this.inline(token.tokens, depth + 1));
    switch (token.type) {
      case "strong":
      case "em":
      case "del":
        return element(token.type, {}, inner());
      case "codespan":
        return element("code", { dir: "ltr" }, [text(token.text as string)]);
      case "br":
        return element("br");
      case "link":
        return this.#link(token as Tokens.Link, this.#inLink(inner));
      case "image":
        return custom("arp-picture", {
          source: token.href as string,
          alt: decodeEntities(token.text as string),
          inline: true,
          context: this.#context,
        });
      case "math":
        return this.#math(token as MathToken);
      case "escape":
        return text(token.text as string);
      case "text":
        return token.tokens ? inner() : this.#text(decodeEntities(token.text as string));
      default:
        return /^<br\s*\/?>$/i.test(token.raw) ? element("br") : text(token.raw);
    }
  }

  /** Text; a `[2]` in it may turn out to be a link to a source. */
  #text(content: string): Node[] {
    const { citations } = this.#context;
    if (citations === null || this.#isInLink) return [text(content)];
    return content.split(/\[([1-9]\d{0,2})\]/).flatMap((part, at): Node[] => {
      if (at % 2 === 0) return part === "" ? [] : [text(part)];
      const mark = custom("arp-cite", { number: Number(part), context: this.#context });
      mark.textContent = `[${part}]`;
      return [mark];
    });
  }

  #inLink(build: () => Node[]): Node[] {
    const was = this.#isInLink;
    this.#isInLink = true;
    const made = build();
    this.#isInLink = was;
    return made;
  }

  #link({ href, title, text: label }: Tokens.Link, inner: Node[]): Node | Node[] {
    const target = linkTarget(decodeEntities(href), this.#context);
    if (target === null) return inner;
    const link = element("a", { href: target.href }, inner);
    if (!leadsAway(target)) {
      if (title) link.title = decodeEntities(title);
      return link;
    }
    const { t } = this.#context;
    link.setAttribute("target", "_blank");
    link.setAttribute("rel", "noopener noreferrer nofollow");
    link.title = [title ? decodeEntities(title) : "", t("opensHost", { host: target.host })].filter(Boolean).join("\n");
    if (!seemsToLeadTo(label, target)) link.append(element("span", { class: "arp-host" }, [text(` (${target.host})`)]));
    return link;
  }
}

/** Whether a link's text names no other host than the one it leads to. */
function seemsToLeadTo(label: string, target: URL): boolean {
  const named = /^(?:https?:\/\/)?([\p{L}\d-]+(?:\.[\p{L}\d-]+)+)/u.exec(label.trim())?.[1]?.toLowerCase();
  const bare = (host: string) => host.replace(/^www\./, "");
  return named === undefined || bare(named) === bare(target.hostname) || !/\.\p{L}{2,}$/u.test(named);
}

/** Which way a text runs, by its first letter: blocks in it have a direction of their own, so `auto` sees none. */
function directionOf(source: string): "ltr" | "rtl" | "auto" {
  const first = /\p{L}/u.exec(source)?.[0];
  if (first === undefined) return "auto";
  return /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u.test(
    first,
  )
    ? "rtl"
    : "ltr";
}

function text(value: string): Text {
  return document.createTextNode(value);
}

function element(tag: string, attributes: Record<string, string> = {}, children: readonly Node[] = []): HTMLElement {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** An element of ours with its properties. */
function custom(tag: string, given: Given): HTMLElement {
  return Object.assign(document.createElement(tag), given);
}
