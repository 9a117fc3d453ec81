/** Shows the page of `pages/` that `?page=NAME` names. */

import { StrictMode, type ComponentType } from "react";
import { createRoot } from "react-dom/client";

const pages = import.meta.glob<{ default: ComponentType }>("./pages/*.tsx");
const name = new URLSearchParams(location.search).get("page");
const { default: Page } = await pages[`./pages/${name}.tsx`]!();

createRoot(document.getElementById("app")!).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
