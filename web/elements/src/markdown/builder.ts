/**
 * Builds nodes from Markdown tokens. Text from an agent only becomes text nodes and never HTML, and each address is
 * checked by `linkTarget` or `<arp-picture>`, so no text can run code or load anything.
 */

import type { Token, Tokens } from "marked";
import type { ArpContext } from "../base/context.js";
import { leadsAway, linkTarget } from "../base/url.js";
import { decodeEntities } from "./entities.js";
import type { MathToken } from "./lexer.js";

/** Properties of a custom element in prose. */
interface Given {
  readonly [name: string]: unknown;
}

/** Deepest level of nesting; deeper text is shown as source, because building recurses and could run out of stack. */
const DEEPEST = 40;
/** Most columns of a table. A wider table is unreadable and takes seconds to lay out, so its source is shown. */
const MOST_COLUMNS = 100;
/** Most characters of text without structure that are shown at once: the layout of longer text takes too long. */
const MOST_PLAIN = 60_000;
const SHOWN_PLAIN = 4_000;

/** Builds the nodes of one text. */
export class ProseBuilder {
  readonly #context: ArpContext;
  /** Level of the last heading. A heading is at most one level deeper than the one before, so that none is skipped. */
  heading = 0;
  /** Whether the current nodes are inside of a link; HTML does not allow a link in a link. */
  #isInLink = false;

  constructor(context: ArpContext) {
    this.#context = context;
  }

  /**
   * Return the nodes of blocks.
   *
   * @param isOpen Whether the last block is still being written.
   * @param from Index of the first row of a table, or item of a list, to build; those before it are already drawn.
   * @param depth Number of blocks around them.
   */
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
      case "text": // content of an item in a tight list
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
      default: // HTML, `plain` (see lexer.ts) and unknown tokens
        return this.#plain(token.raw.replace(/\n+$/, ""));
    }
  }

  /** Return text as it is. A very long text is cut off, with a button that shows the rest. */
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

  /** Return the nodes of inline tokens. */
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

  /** Return the nodes of a text. Each `[2]` in it gets an element, because its source may arrive later. */
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

  /** Build nodes inside of a link; `[2]` stays text there. */
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

/** Return whether the text of a link names its host, or no host at all. Another host in the text would deceive. */
function seemsToLeadTo(label: string, target: URL): boolean {
  const named = /^(?:https?:\/\/)?([\p{L}\d-]+(?:\.[\p{L}\d-]+)+)/u.exec(label.trim())?.[1]?.toLowerCase();
  const bare = (host: string) => host.replace(/^www\./, "");
  return named === undefined || bare(named) === bare(target.hostname) || !/\.\p{L}{2,}$/u.test(named);
}

/**
 * Return the direction of a text by its first letter. Lists, quotes and tables need this: `dir="auto"` ignores text in
 * child blocks with a `dir` of their own, and would find no letter at all.
 */
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

/** Return a custom element with its properties set. */
function custom(tag: string, given: Given): HTMLElement {
  return Object.assign(document.createElement(tag), given);
}
