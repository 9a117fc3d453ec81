/** streamdown in React. Its state is set once per frame, which gives it the best figures. */

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
    let isScheduled = false;
    await feed.send((piece) => {
      text += piece;
      if (isScheduled) return;
      isScheduled = true;
      requestAnimationFrame(() => {
        isScheduled = false;
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
