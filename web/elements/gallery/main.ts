/** The gallery: `?theme=dark&dir=rtl&locale=ar&only=table` picks what is shown and how. */

import { loadStrings, translator } from "@agent-rendering/core/strings";
import { html, render } from "lit";
import { createContext, loadComponents, renderComponent } from "../src/index.js";
import { SAMPLES } from "./samples.js";

const asked = new URLSearchParams(location.search);
const theme = asked.get("theme") === "dark" ? "dark" : "light";
const [locale, strings] = await loadStrings([asked.get("locale") ?? "en"]);
const t = translator(locale, strings);
const only = asked.get("only");

document.documentElement.dataset.theme = theme;
document.documentElement.dir = asked.get("dir") ?? t.direction;
document.documentElement.lang = locale;

await loadComponents();
const said: unknown[] = [];
const context = createContext({ t, theme, answer: (component, value) => void said.push({ id: component.id, value }), announce: (text) => void said.push(text) });
// What tests look at: what was answered and announced, and the doors of the package.
Object.assign(globalThis, { gallery: { said, context, createContext, renderComponent, render, html, SAMPLES } });

const shown = SAMPLES.filter(({ name }) => only === null || name === only || name.startsWith(`${only} `));
render(
  html`${shown.map(({ name, component }) => html`<section class="sample" data-name=${name}><h2>${name}</h2><div data-theme=${theme}>${renderComponent(component, context)}</div></section>`)}`,
  document.getElementById("gallery") as HTMLElement,
);
document.documentElement.dataset.ready = "true";
