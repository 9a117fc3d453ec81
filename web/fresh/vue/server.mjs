/** W86: renders with the installed packages on a server. */

import { createSSRApp, version } from "vue";
import { renderToString } from "vue/server-renderer";
import { page } from "./src/hydrated.mjs";

console.log(version.split(".")[0], await renderToString(createSSRApp(page)));
