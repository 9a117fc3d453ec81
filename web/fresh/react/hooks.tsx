/** W83: a chat made with hooks only; each message counts how often it is rendered. */

import { useArpChat, type ChatMessage } from "@agent-rendering/react";
import { memo, useLayoutEffect, useRef, useState } from "react";

const Message = memo(function Message({ message }: { message: ChatMessage }) {
  const drawn = useRef(0);
  const place = useRef<HTMLLIElement>(null);
  useLayoutEffect(() => {
    drawn.current += 1;
    if (place.current) place.current.dataset.drawn = String(drawn.current);
  });
  return <li ref={place}>{message.content}</li>;
});

export default function App() {
  const { messages, sendMessage, isStreaming, isConnected, client } = useArpChat({ url: "/" });
  const [text, setText] = useState("");
  return (
    <main>
      <ol>
        {messages.map((message) => (
          <Message key={message.id} message={message} />
        ))}
      </ol>
      <input aria-label="Text" value={text} onChange={(event) => setText(event.target.value)} />
      <button onClick={() => sendMessage(text)}>Send</button>
      <button onClick={() => client?.disconnect()}>Leave</button>
      <button onClick={() => client?.connect()}>Come back</button>
      <p>{isConnected ? "online" : "away"}</p>
      <p>{isStreaming ? "streaming" : "idle"}</p>
    </main>
  );
}
