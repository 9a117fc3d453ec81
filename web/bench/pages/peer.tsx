/** streamdown in React; its state is set once per frame, which suits it best. */

import { useEffect, useState } from "react";
import { Streamdown } from "streamdown";
import { feed, painted } from "./feed";

let show: (text: string) => void = () => undefined;

const bench = {
  async stream(_turn: string, count: number, rate: number) {
    let text = "";
    let isAsked = false;
    await feed(
      (piece) => {
        text += piece;
        if (isAsked) return;
        isAsked = true;
        requestAnimationFrame(() => {
          isAsked = false;
          show(text);
        });
      },
      count,
      rate,
    );
    await painted();
  },
  text: () => document.querySelector("main")?.textContent?.length ?? 0,
};
Object.assign(window, { bench });

export default function App() {
  const [text, setText] = useState("");
  useEffect(() => {
    show = setText;
  }, []);
  return (
    <main style={{ height: "100%", overflow: "auto" }}>
      <Streamdown>{text}</Streamdown>
    </main>
  );
}
