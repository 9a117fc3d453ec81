/** W86: renders with the installed packages on a server. */

import { version } from "react";
import { renderToString } from "react-dom/server";
import { page } from "./src/hydrated.mjs";

console.log(version.split(".")[0], renderToString(page));
