/** Shows the page of `pages/` that `?page=NAME` names. */

import { createApp, type Component } from "vue";

const pages = import.meta.glob<{ default: Component }>("./pages/*.vue");
const name = new URLSearchParams(location.search).get("page");
const { default: Page } = await pages[`./pages/${name}.vue`]!();

createApp(Page).mount("#app");
