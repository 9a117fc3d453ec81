/** W86: hydrates the markup of the server. */

import { hydrateRoot } from "react-dom/client";
import { page } from "./hydrated.mjs";

hydrateRoot(document.getElementById("app"), page);
