/** W86: hydrates the markup of the server. */

import { createSSRApp } from "vue";
import { page } from "./hydrated.mjs";

createSSRApp(page).mount("#app");
