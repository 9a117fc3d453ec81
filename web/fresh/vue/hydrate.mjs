/** W86: takes over what the server has sent. */

import { createSSRApp } from "vue";
import { page } from "./hydrated.mjs";

createSSRApp(page).mount("#app");
