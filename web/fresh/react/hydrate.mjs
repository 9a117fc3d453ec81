/** W86: takes over what the server has sent. */

import { hydrateRoot } from "react-dom/client";
import { page } from "./hydrated.mjs";

hydrateRoot(document.getElementById("app"), page);
