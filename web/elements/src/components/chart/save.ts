/** Saves a drawn chart as a file: SVG with all styles included, or PNG. */

const KEPT = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "paint-order",
  "font-family",
  "font-size",
  "font-weight",
];

/** Return a drawing as SVG text. Computed styles become attributes, because the file has no style sheet. */
export function svgText(drawing: SVGSVGElement): string {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const [from, to] = [
    [drawing, ...drawing.querySelectorAll("*")],
    [copy, ...copy.querySelectorAll("*")],
  ];
  from.forEach((element, at) => {
    const style = getComputedStyle(element);
    const target = to[at] as Element;
    for (const name of KEPT) target.setAttribute(name, style.getPropertyValue(name));
    target.removeAttribute("style");
    target.removeAttribute("class");
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.style.background = getComputedStyle(drawing.closest(".arp-card") ?? drawing).backgroundColor;
  return new XMLSerializer().serializeToString(copy).replace(/<!--[^]*?-->/g, "");
}

/** Return a drawing as a PNG of twice its size; `null` if the browser cannot create one. */
export async function pngOf(drawing: SVGSVGElement): Promise<Blob | null> {
  const { width, height } = drawing.viewBox.baseVal;
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(drawing))}`;
  await picture.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
  const context = canvas.getContext("2d");
  if (context === null) return null;
  context.fillStyle = getComputedStyle(drawing.closest(".arp-card") ?? drawing).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
