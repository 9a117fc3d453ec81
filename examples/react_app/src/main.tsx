import { ArpChat, type ArpComponentProps } from "@agent-rendering/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

/** A component of our own: what an agent shows as `x-demo-rating`. */
function Rating({ stars, action }: ArpComponentProps & { stars: number }) {
  return <button onClick={() => action("rate", { stars })}>{"★".repeat(stars)}</button>;
}

createRoot(document.getElementById("app")!).render(
  <StrictMode>
    <ArpChat url="/" title="Data Explorer" suggestions={["tables"]} components={{ "x-demo-rating": Rating }} />
  </StrictMode>,
);
