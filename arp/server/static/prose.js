/**
 * Markdown into elements, by createElement and text nodes alone. Remote images are never fetched:
 * they become links. Finished pieces of a growing text keep their elements.
 */

import { asText, el, icon, setText, unseen } from "./dom.js";
import { parse, pieceStarts } from "./markdown.js";

const SCHEMES = new Set(["http:", "https:", "mailto:"]);
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/;

/** A view of a growing text: `node`, and `update(text, open)`. */
export class Prose {
  node = el("div", { class: "prose" });
  #text = "";
  #open = false;
  #starts = [0];
  #outline = { top: null };

  /** Shows `text`; `open` while more may follow. */
  update(text, open = false) {
    if (text === this.#text && open === this.#open && this.node.hasChildNodes()) return;
    const safe = text.startsWith(this.#text) ? Math.max(0, this.#starts.length - 2) : 0;
    this.#starts = [...this.#starts.slice(0, safe), ...pieceStarts(text, this.#starts[safe])];
    if (safe === 0) this.#outline = { top: null };
    while (this.node.childNodes.length > safe) this.node.lastChild.remove();
    for (let piece = safe; piece < this.#starts.length; piece += 1) this.#add(text, piece, open);
    this.#text = text;
    this.#open = open;
  }

  #add(text, piece, open) {
    const end = this.#starts[piece + 1] ?? text.length;
    const last = open && piece === this.#starts.length - 1;
    const blocks = parse(text.slice(this.#starts[piece], end), last);
    this.node.append(
      el(
        "div",
        { class: "piece" },
        blocks.map((node) => block(node, this.#outline)),
      ),
    );
  }
}

/**
 * A text without markdown: lines stay lines, what is laid out by spaces stays so, addresses are
 * links.
 */
export function plain(text, className = "plain") {
  const words = asText(text);
  if (!/\n/.test(words) || !/ {2}|^[ +[-]/m.test(words))
    return el("p", { class: className, dir: "auto" }, linked(words));
  return el(
    "pre",
    { "class": "aligned", "tabindex": "0", "role": "region", "aria-label": "Text" },
    linked(words),
  );
}

/** A text as nodes in which bare addresses are links. */
export function linked(text) {
  return text
    .split(/(https?:\/\/[^\s<>"']{1,2048})/)
    .map((part, index) => (index % 2 ? link(part, [part]) : part));
}

const BLOCKS = {
  p: ({ children }) => el("p", { dir: "auto" }, children.map(inline)),
  h: heading,
  code: ({ language, text }) => codeBlock(text, language),
  quote: ({ children }) =>
    el(
      "blockquote",
      { dir: "auto" },
      children.map((child) => block(child)),
    ),
  rule: () => el("hr"),
  list: ({ ordered, start, loose, items }) =>
    el(
      ordered ? "ol" : "ul",
      { start: start === 1 ? null : start, dir: "auto" },
      items.map((item) =>
        el("li", {}, loose ? item.map((child) => block(child)) : item.map(tight).flat()),
      ),
    ),
  table: ({ align, head, rows }) => proseTable(align, head, rows),
};

function block(node, outline) {
  return BLOCKS[node.t](node, outline);
}

/**
 * The first heading of a text comes right below the page's own, whatever its level in the text is.
 */
function heading({ level, children }, outline = { top: 1 }) {
  outline.top ??= level;
  const rank = Math.min(6, Math.max(3, 3 + level - outline.top));
  return el(`h${rank}`, { class: `h${level}`, dir: "auto" }, children.map(inline));
}

/** A paragraph in a tight list has no element of its own. */
function tight(node) {
  if (node.t !== "p") return block(node);
  const box = /^\[([ xX])\] /.exec(node.children[0]);
  if (!box) return node.children.map(inline);
  const [first, ...rest] = node.children;
  const done = box[1] !== " ";
  return [
    el("span", { "aria-hidden": "true" }, done ? "☑ " : "☐ "),
    unseen(done ? "done: " : "to do: "),
    first.slice(4),
    ...rest.map(inline),
  ];
}

function inline(node) {
  if (typeof node === "string") return node;
  switch (node.t) {
    case "br":
      return el("br");
    case "code":
      return el("code", { dir: "ltr" }, node.text);
    case "a":
      return link(node.url, node.children.map(inline));
    case "image":
      return picture(node);
    default:
      return el(node.t, {}, node.children.map(inline));
  }
}

/** The address if it may be followed, else null. */
export function safeUrl(address) {
  const url = URL.canParse(address) ? new URL(address) : null;
  return url && SCHEMES.has(url.protocol) ? url : null;
}

function link(address, children) {
  const label = el("span", {}, children);
  for (const inner of label.querySelectorAll("a")) inner.replaceWith(...inner.childNodes);
  const url = safeUrl(address);
  if (!url) return label;
  const text = label.textContent;
  const disguised = url.host && /\w\.\w/.test(text) && !text.toLowerCase().includes(url.host);
  return el(
    "a",
    { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow", title: url.href },
    [...label.childNodes],
    disguised && ` (${url.host})`,
  );
}

function picture({ url, alt }) {
  if (PICTURE.test(url)) return el("img", { src: url, alt, class: "picture" });
  return link(url, [`Image: ${alt || "without description"}`]);
}

function proseTable(align, head, rows) {
  const row = (tag) => (cells) =>
    el(
      "tr",
      {},
      cells.map((cell, column) =>
        el(
          tag,
          { class: align[column], dir: "auto", scope: tag === "th" && "col" },
          cell.map(inline),
        ),
      ),
    );
  return el(
    "div",
    { "class": "scroll-x", "tabindex": "0", "role": "region", "aria-label": "Table" },
    el("table", {}, el("thead", {}, row("th")(head)), el("tbody", {}, rows.map(row("td")))),
  );
}

/** Code as it is, with its language and a button that copies it. */
export function codeBlock(text, language) {
  const code = el("code", { dir: "ltr" }, text);
  const label = el("span", { "aria-live": "polite" }, "Copy");
  const copy = el(
    "button",
    { type: "button", class: "copy", onclick: () => copyOut(code, label) },
    icon("copy"),
    label,
  );
  return el(
    "figure",
    { class: "code" },
    el("figcaption", {}, el("span", {}, language || "text"), copy),
    el(
      "pre",
      { "tabindex": "0", "aria-label": `Code, ${language || "text"}`, "role": "region" },
      code,
    ),
  );
}

/** Copies; where the browser forbids that (plain http), selects the code instead. */
async function copyOut(code, label) {
  let done = "Copied";
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    getSelection().selectAllChildren(code);
    done = "Selected: press Ctrl+C";
  }
  setText(label, done);
  setTimeout(() => setText(label, "Copy"), 2500);
}
