/** Icons: strokes on a grid of 24 × 24. They are hidden from screen readers, so each needs a text beside it. */

import { svg, type SVGTemplateResult } from "lit";

const SHAPES = {
  success: svg`<circle cx="12" cy="12" r="9"/><path d="m8 12.3 2.8 2.8L16.2 9.5"/>`,
  error: svg`<path d="M8.3 3h7.4L21 8.3v7.4L15.7 21H8.3L3 15.7V8.3z"/><path d="M12 7.8v5M12 16.2v.1"/>`,
  warning: svg`<path d="M12 4 2.8 19.5h18.4z"/><path d="M12 10v4.2M12 16.9v.1"/>`,
  info: svg`<circle cx="12" cy="12" r="9"/><path d="M12 11.2v5M12 7.8v.1"/>`,
  check: svg`<path d="m5 12.8 4.4 4.4L19 7.6"/>`,
  cross: svg`<path d="M6.5 6.5l11 11M17.5 6.5l-11 11"/>`,
  copy: svg`<rect x="9" y="9" width="11" height="11" rx="2.5"/><path d="M15 9V6.5A2.5 2.5 0 0 0 12.5 4h-6A2.5 2.5 0 0 0 4 6.5v6A2.5 2.5 0 0 0 6.5 15H9"/>`,
  download: svg`<path d="M12 4v11m0 0 4.5-4.5M12 15l-4.5-4.5M5 19.5h14"/>`,
  wrap: svg`<path d="M4 6h16M4 12h13a3 3 0 0 1 0 6h-4m0 0 2.5-2.5M13 18l2.5 2.5M4 18h4"/>`,
  lines: svg`<path d="M10 6h10M10 12h10M10 18h10M4.5 5.5v2M4.5 11.5v2M4.5 17.5v2"/>`,
  table: svg`<rect x="3.5" y="4.5" width="17" height="15" rx="2"/><path d="M3.5 10h17M9.5 10v9.5"/>`,
  chart: svg`<path d="M4 4v16h16"/><path d="m7.5 15 3.5-4.5 3 2.5 5-6.5"/>`,
  image: svg`<rect x="3.5" y="4.5" width="17" height="15" rx="2"/><circle cx="9" cy="10" r="1.6"/><path d="m4 17 4.5-4 3.5 3 3.5-4.5 5 5.5"/>`,
  open: svg`<path d="M14 4.5h5.5V10M19.5 4.5 11 13M17 14v4.5a1.5 1.5 0 0 1-1.5 1.5h-10A1.5 1.5 0 0 1 4 18.5v-10A1.5 1.5 0 0 1 5.5 7H10"/>`,
  enlarge: svg`<path d="M14.5 4.5h5v5M9.5 19.5h-5v-5M19 5l-5.5 5.5M5 19l5.5-5.5"/>`,
  search: svg`<circle cx="11" cy="11" r="6.5"/><path d="m16 16 4.5 4.5"/>`,
  up: svg`<path d="M12 19V5m0 0-5 5m5-5 5 5"/>`,
  down: svg`<path d="M12 5v14m0 0 5-5m-5 5-5-5"/>`,
  both: svg`<path d="m8 9.5 4-4 4 4M8 14.5l4 4 4-4"/>`,
  chevron: svg`<path d="m9 5.5 6.5 6.5L9 18.5"/>`,
  pending: svg`<circle cx="12" cy="12" r="8.5" stroke-dasharray="3.2 3.475"/>`,
  active: svg`<circle cx="12" cy="12" r="8.5" opacity=".3"/><path d="M12 3.5a8.5 8.5 0 0 1 8.5 8.5"/>`,
  question: svg`<circle cx="12" cy="12" r="9"/><path d="M9.4 9.4a2.7 2.7 0 1 1 3.9 2.4c-.8.4-1.3 1-1.3 2M12 16.7v.1"/>`,
  file: svg`<path d="M13.5 3.5H7A1.5 1.5 0 0 0 5.5 5v14A1.5 1.5 0 0 0 7 20.5h10a1.5 1.5 0 0 0 1.5-1.5V8.5zM13.5 3.5v5h5"/>`,
  unfold: svg`<path d="M12 3.5v6m0-6L9.5 6M12 3.5 14.5 6M12 20.5v-6m0 6L9.5 18m2.5 2.5 2.5-2.5M4 12h16"/>`,
} as const;

export type IconName = keyof typeof SHAPES;

/** Return an icon as SVG. */
export function icon(name: IconName): SVGTemplateResult {
  return svg`<svg class="arp-icon arp-icon-${name}" viewBox="0 0 24 24" aria-hidden="true" focusable="false">${SHAPES[name]}</svg>`;
}

/** Return the icon that an agent named: the drawing for a name from the table, an emoji as it is, otherwise nothing. */
export function givenIcon(name: string): SVGTemplateResult | string {
  if (Object.hasOwn(SHAPES, name)) return icon(name as IconName);
  return /\p{Extended_Pictographic}|\p{Regional_Indicator}/u.test(name) ? name : "";
}
