/** A host with rules for all element names, and comparisons of their effect. The functions run in the page. */

/** Add the host's style sheet before all others, in the position of a sheet in the document. */
export function hostile(): void {
  const sheet = new CSSStyleSheet();
  const all =
    "margin: 11px; padding: 5px 9px; border: 3px dotted red; border-radius: 9px; background: yellow; color: red; font: italic 800 23px/3 cursive; letter-spacing: 2px; word-spacing: 3px; text-align: right; text-transform: uppercase; text-indent: 2em; text-decoration: line-through; text-shadow: 1px 1px blue; white-space: nowrap; vertical-align: super; list-style: square inside; box-shadow: 0 0 9px red; opacity: .7; box-sizing: content-box; min-width: 3px; max-width: 77px; min-height: 41px; max-height: 50px; transform: rotate(1deg); filter: blur(1px); cursor: help; transition: all 1s; outline: 2px solid red; visibility: hidden; overflow: scroll; float: right; clear: both; z-index: 7; border-collapse: collapse; border-spacing: 9px; caption-side: bottom; table-layout: fixed; appearance: none; resize: both; columns: 2; hyphens: auto; word-break: break-all; quotes: none; accent-color: red; user-select: none; pointer-events: none";
  const tags =
    "a abbr article aside b blockquote button caption code dd del details dialog div dl dt em fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr i input ins kbd label legend li main mark menu nav ol option output p pre progress q s samp section select small span strong sub summary sup table tbody td textarea tfoot th thead time tr u ul";
  sheet.replaceSync(`
    * { all: revert }
    * { ${all} }
    ${tags.split(" ").join(", ")} { ${all}; display: inline-flex; width: 33px; height: 12px; position: fixed; inset: 4px }
    html body div p, html body section button, html body div input, table tbody tr td { ${all}; display: none }
    img, svg { display: block; margin: 3em; padding: 4px; border: 2px solid red; border-radius: 50%; max-width: 13px; opacity: .4; float: left; vertical-align: top; filter: invert(1); position: fixed }
    body { letter-spacing: 3px; text-align: right; text-transform: uppercase; font-style: italic; font-weight: 900; word-spacing: 4px; text-indent: 3em; white-space: nowrap; cursor: help; list-style: square; text-shadow: 1px 1px red; hyphens: auto; border-collapse: collapse; border-spacing: 4px }
    @layer late { button, input, textarea { display: none } p, h3, td, li, dd, table { color: red; position: fixed; font-size: 40px } }
  `);
  document.adoptedStyleSheets = [sheet, ...document.adoptedStyleSheets];
}

/**
 * Fix the layout of the host's containers, so that its rules do not change the space that our elements get. This
 * includes the font size of the root, from which our sizes are computed, and text decorations, which apply to all
 * descendants.
 */
export function steady(): void {
  const names =
    "display position inset float clear margin padding border box-sizing width height min-width max-width min-height max-height columns overflow transform filter opacity visibility transition pointer-events user-select font-size text-decoration";
  const containers = [
    ...document.querySelectorAll<HTMLElement>(":is(html, body, main, section, div):not(.arp, .arp *)"),
  ];
  const kept = containers.map((one) =>
    names.split(" ").map((name) => [name, getComputedStyle(one).getPropertyValue(name)] as const),
  );
  containers.forEach((one, at) =>
    kept[at]?.forEach(([name, value]) => one.style.setProperty(name, value, "important")),
  );
}

/** Return all properties of all our elements, except those that depend on the space that the host gives. */
export function looks(): string[] {
  const laidOut =
    /^(?:(?:block|inline|perspective|transform)-(?:size|origin)|width|height|(?:min|max)-(?:block|inline)-size|.*-origin|(?:inset|top|right|bottom|left)(?:-.*)?|margin-(?:left|right|inline.*)|grid-template-.*|x|y|-webkit-locale)$/;
  return [...document.querySelectorAll(".arp, .arp *")]
    .filter(
      (one) => one.closest("arp-own") === null && one.closest("svg, math") === (one.localName === "svg" ? one : null),
    )
    .map((one) => {
      const style = getComputedStyle(one);
      const sent = [...style]
        .filter((name) => !laidOut.test(name) && !name.startsWith("--"))
        .map((name) => `${name}: ${style.getPropertyValue(name)}`);
      return `${one.localName}.${one.getAttribute("class") ?? ""}{${sent.join("; ")}}`;
    });
}

/** Return the properties of an element of the host. */
export function outside(): string {
  const own = document.createElement("button");
  document.body.append(own);
  const style = getComputedStyle(own);
  const sent = [...style].map((name) => style.getPropertyValue(name)).join("; ");
  own.remove();
  return sent;
}

/** Return the differences, as element and property, each pair once. */
export function differing(before: readonly string[], after: readonly string[]): string[] {
  if (before.length !== after.length) return [`${before.length} elements, ${after.length} then`];
  const found = before.flatMap((line, at) => {
    const name = line.slice(0, line.indexOf("{"));
    const was = new Map(parts(line));
    return parts(after[at] as string).flatMap(([key, value]) =>
      was.get(key) === value ? [] : [`${name} ${key}: ${was.get(key)} -> ${value}`],
    );
  });
  return [...new Set(found)];
}

function parts(line: string): [string, string][] {
  return line
    .slice(line.indexOf("{") + 1, -1)
    .split("; ")
    .map((one) => [one.slice(0, one.indexOf(": ")), one.slice(one.indexOf(": ") + 2)]);
}
