/** The gallery: `?theme=dark&dir=rtl&locale=ar&only=table` picks what is shown and how. */

import { loadStrings, translator } from "@agent-rendering/core/strings";
import { html, render } from "lit";
import { createContext, loadComponents, renderComponent } from "../src/index.js";
import { SAMPLES } from "./samples.js";

const query = new URLSearchParams(location.search);
const theme = query.get("theme") === "dark" ? "dark" : "light";
const [locale, strings] = await loadStrings([query.get("locale") ?? "en"]);
const t = translator(locale, strings);
const only = query.get("only");

document.documentElement.dataset.theme = theme;
document.documentElement.dir = query.get("dir") ?? t.direction;
document.documentElement.lang = locale;

await loadComponents();
const sent: unknown[] = [];
const context = createContext({
  t,
  theme,
  answer: (component, value) => void sent.push({ id: component.id, value }),
  announce: (text) => void sent.push(text),
});
// What tests look at: what was answered and announced, and the doors of the package.
Object.assign(globalThis, { gallery: { said: sent, context, createContext, renderComponent, render, html, SAMPLES } });

const shown = SAMPLES.filter(({ name }) => only === null || name === only || name.startsWith(`${only} `));
render(
  html`${shown.map(({ name, component }) => html`<section class="sample" data-name=${name}><h2>${name}</h2><div data-theme=${theme}>${renderComponent(component, context)}</div></section>`)}`,
  document.getElementById("gallery") as HTMLElement,
);
document.documentElement.dataset.ready = "true";
