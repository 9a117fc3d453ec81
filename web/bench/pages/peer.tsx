/** streamdown in React; its state is set once per frame, which suits it best. */

import { useEffect, useState } from "react";
import { Streamdown } from "streamdown";
import { Feed, painted, pieces } from "./feed";

let feed: Feed;
let show: (text: string) => void = () => undefined;

const bench = {
  async begin(_turn: string, count: number) {
    feed = await Feed.of(pieces(count));
  },
  async stream(rate: number) {
    let text = "";
    let isAsked = false;
    await feed.send((piece) => {
      text += piece;
      if (isAsked) return;
      isAsked = true;
      requestAnimationFrame(() => {
        isAsked = false;
        show(text);
      });
    }, rate);
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
