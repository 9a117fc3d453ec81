/** Icons of buttons: lines of equal width in the colour of the text. */

import { html, svg, type TemplateResult } from "lit";

const PATHS = {
  send: "M12 19V5m-6 6 6-6 6 6",
  stop: "M8 8h8v8H8z",
  attach: "M20 11.5 12 19.5a5 5 0 0 1-7-7l8.5-8.5a3.3 3.3 0 0 1 4.7 4.7l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4l7.6-7.6",
  close: "M6 6l12 12M18 6 6 18",
  down: "M12 5v14m-6-6 6 6 6-6",
  copy: "M9 9h10v11H9zM5 15V4h10",
  check: "m5 12.5 4.5 4.5L19 7.5",
  edit: "M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4",
  again: "M20 11a8 8 0 1 0-2.3 6.3M20 5v6h-6",
  file: "M7 3h7l4 4v14H7zM14 3v5h4",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9.5h.01",
  tool: "M14.5 6.5a4 4 0 0 1 5-1l-2.6 2.6 2 2 2.600-2.600a4 4 0 0 1-5.300 5.300L9 20l-5-5 7.200-7.200a4 4 0 0 1 3.300-1.300z",
  thought: "M9 18h6M10 21h4M12 3a6 6 0 0 0-3.500 10.900c.6.5 1 1.200 1 2h5c0-.8.400-1.500 1-2A6 6 0 0 0 12 3z",
  thumbUp:
    "M4 10.500h4V20H4zM8 11l4-7.500c1.600 0 2.300 1.200 2 2.700l-.6 3.300H19a1.500 1.500 0 0 1 1.500 1.800l-1.300 7.200A1.900 1.900 0 0 1 17.300 20H8",
  thumbDown:
    "M4 13.500h4V4H4zM8 13l4 7.500c1.600 0 2.300-1.200 2-2.700l-.6-3.300H19a1.500 1.500 0 0 0 1.500-1.800l-1.300-7.200A1.900 1.900 0 0 0 17.300 4H8",
  alert: "M12 8v5m0 3v.01M12 3 2.500 20h19z",
  shield: "M12 3 5 6v5c0 4.500 3 8 7 10 4-2 7-5.500 7-10V6z",
  panel:
    "M5 4.500h14a1.500 1.500 0 0 1 1.500 1.500v12a1.500 1.500 0 0 1-1.500 1.500H5A1.500 1.500 0 0 1 3.500 18V6A1.500 1.500 0 0 1 5 4.500zM9.500 4.500v15",
  compose:
    "M12 5H6.500A1.500 1.500 0 0 0 5 6.500v11A1.500 1.500 0 0 0 6.500 19h11a1.500 1.500 0 0 0 1.500-1.500V12M10 14l.7-3L18 3.700l2.300 2.300L13 13.300z",
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4",
  pin: "M9 4h6l-1 6 3 3v2H7v-2l3-3zM12 15v6",
  trash: "M5 7h14M10 4h4M7 7l1 13h8l1-13",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2m0 16v2M4 12H2m20 0h-2M5 5l1.500 1.500m11 11L19 19M5 19l1.500-1.500m11-11L19 5",
  moon: "M20 14.500A8.500 8.500 0 0 1 9.500 4a8.500 8.500 0 1 0 10.500 10.500z",
  screen: "M3 5h18v12H3zM8 21h8M12 17v4",
  globe: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c5 6 5 12 0 18M12 3c-5 6-5 12 0 18",
  export: "M12 15V4m-4 4 4-4 4 4M5 14v6h14v-6",
  import: "M12 4v11m-4-4 4 4 4-4M5 14v6h14v-6",
  print: "M7 9V4h10v5M7 17H4V9h16v8h-3M7 14h10v6H7z",
  keyboard: "M3 6h18v12H3zM7 10h.01M11 10h.01M15 10h.01M8 14h8",
  branch: "M7 4v10M7 14a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM17 4a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM17 8c0 5-10 3-10 8",
  back: "m15 5-7 7 7 7",
  forward: "m9 5 7 7-7 7",
  adjust:
    "M5 4.500h14a1.500 1.500 0 0 1 1.500 1.500v9a1.500 1.500 0 0 1-1.500 1.500h-7l-4 3.500v-3.500H5A1.500 1.500 0 0 1 3.500 15V6A1.500 1.500 0 0 1 5 4.500zM7 8.500h10M7 12.500h10M14 7v3M10 11v3",
  settings: "M4 7h10m4 0h2M4 17h2m4 0h10M14 4v6M8 14v6",
  offline: "M4 4l16 16M8.500 15.500a5 5 0 0 1 7 0M5 12a10 10 0 0 1 4-2.400M15 9.600A10 10 0 0 1 19 12M12 19h.01",
} as const;

export type IconName = keyof typeof PATHS;

/** Return an icon. Screen readers skip it: the button has a name. */
export function icon(name: IconName): TemplateResult {
  return html`<svg class="arp-icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">${svg`<path d=${PATHS[name]} />`}</svg>`;
}
