/** W82: an application for the draft's React package, with a changed package name. */

import {
  ArpActivityPanel,
  ArpChat,
  ArpMessage,
  ArpProvider,
  ArpRenderer,
  useArp,
  useArpChat,
  useArpContext,
  type ArpActivityPanelProps,
  type ArpCapabilities,
  type ArpChatProps,
  type ArpContextValue,
  type ArpMessageProps,
  type ArpProviderProps,
  type ArpRendererProps,
  type ArpState,
  type ChatMessage,
  type ChatSession,
  type ToolCardState,
  type ToolRenderEvent,
  type UseArpChatOptions,
  type UseArpChatReturn,
  type UseArpOptions,
  type UseArpReturn,
} from "@agent-rendering/react";
import {
  Chart,
  Choices,
  CodeBlock,
  Confirm,
  DEFAULT_COMPONENTS,
  Diff,
  Form,
  KeyValue,
  ProductCards,
  Progress,
  StatusCard,
  Table,
} from "@agent-rendering/react/ui";
import { useEffect, type ComponentType } from "react";

const url = new URL("/_arp/v1", location.href).href.replace(/^http/, "ws");

function Widget({
  title,
  _restored,
  onInput,
}: {
  title: string;
  _restored?: boolean;
  onInput?: (text: string) => void;
}) {
  return (
    <button disabled={_restored} onClick={() => onInput?.("clicked")}>
      {title}
    </button>
  );
}

// oxlint-disable-next-line typescript/no-explicit-any -- as applications written for the draft declare it
const components: Record<string, ComponentType<any>> = { ...DEFAULT_COMPONENTS, "x-demo-widget": Widget };

function Headless() {
  const options: UseArpChatOptions = {
    url,
    apiBaseUrl: location.origin,
    sessionId: undefined,
    chatParam: "message",
    sseFallbackPath: "/chat",
    hasFileUpload: true,
    fileParam: "file",
  };
  const chat: UseArpChatReturn = useArpChat(options);
  const messages: ChatMessage[] = chat.messages;
  const cards: ToolCardState[] = chat.toolCards;
  const sessions: ChatSession[] = chat.sessions;
  const capabilities: ArpCapabilities | null = chat.capabilities;
  const switching: (id: string) => Promise<void> = chat.switchSession;
  const fresh: () => void = chat.startNewChat;
  const deleting: (id: string) => Promise<void> = chat.deleteSession;
  const send: (text: string, file?: File) => void = chat.sendMessage;
  useEffect(() => {
    if (chat.isConnected) void chat.loadSessions();
  }, [chat.isConnected, chat.loadSessions]);
  return (
    <ArpProvider connected={chat.isConnected} capabilities={capabilities} components={components}>
      <h1>{chat.isConnected ? `session ${chat.sessionId}` : "connecting"}</h1>
      {messages.map((message) => (
        <ArpMessage
          key={message.id}
          role={message.role}
          content={message.content}
          avatar="A"
          file={message.file}
          uiEvents={message.uiEvents}
          restored={message.restored}
          onInput={send}
        />
      ))}
      <ArpActivityPanel toolCards={cards} open={chat.runningToolCount > 0} onToggle={() => undefined} />
      <button disabled={chat.isStreaming} onClick={() => send("hello")}>
        say
      </button>
      <button onClick={fresh}>new</button>
      <p>{sessions.map(({ title }) => title).join()}</p>
      <p hidden onClick={() => void switching("a").then(() => deleting("a"))} />
      <Connected />
    </ArpProvider>
  );
}

function Connected() {
  const context: ArpContextValue = useArpContext();
  const event: ToolRenderEvent = { tool: "ask", component: "x-demo-widget", props: { title: "Widget" } };
  return (
    <>
      <i>{String(context.connected)}</i>
      <ArpRenderer
        event={event}
        components={context.components}
        maxDepth={3}
        restored={false}
        onInput={(text: string) => (document.title = text)}
      />
    </>
  );
}

function Raw() {
  const options: UseArpOptions = { url, sessionId: "raw", autoConnect: false, maxReconnectAttempts: 5, WebSocket };
  const { state, client, connect, disconnect }: UseArpReturn = useArp(options);
  const told: ArpState = state;
  useEffect(() => {
    connect();
    return disconnect;
  }, [connect, disconnect]);
  return <b>{told.connected && client?.connected ? "raw" : ""}</b>;
}

const ui = [
  <StatusCard key="a" status="success" title="Saved" sections={[{ label: "Log", content: "ok" }]} />,
  <Table key="b" headers={["a"]} rows={[["1"]]} highlight={[0]} />,
  <CodeBlock key="c" language="ts" code="1" />,
  <Diff key="d" before="a" after="b" before_label="was" after_label="is" />,
  <KeyValue key="e" items={[{ key: "a", value: "b" }]} />,
  <Progress key="f" steps={[{ name: "a", status: "done" }]} />,
  <Chart key="g" type="bar" labels={["a"]} datasets={[{ label: "S", data: [1] }]} />,
  <Form key="h" fields={[{ name: "a", options: ["x"] }]} submit_label="Go" />,
  <Confirm key="i" title="Sure?" _restored onInput={(text) => text.length} />,
  <Choices key="j" title="Which?" options={["a", "b"]} style="list" onInput={(text) => text.length} />,
  <ProductCards key="k" cards={[{ name: "a", price: "1" }]} />,
];

const chat: ArpChatProps = {
  url,
  title: "Draft",
  description: "As it was",
  suggestions: ["hello"],
  avatar: "A",
  logo: "A",
  theme: "dark",
  accentColor: "#e8a317",
  components,
  className: "mine",
  style: { height: 300 },
  showActivityPanel: true,
  renderMarkdown: (content: string) => <q>{content}</q>,
  onSend: (message: string) => void (document.body.dataset.sent = message),
  onSessionChange: (id: string) => void (document.body.dataset.session = id),
};

export type Kept = [ArpActivityPanelProps, ArpMessageProps, ArpProviderProps, ArpRendererProps];

export default function App() {
  return (
    <>
      <ArpChat {...chat} />
      <Headless />
      <Raw />
      {ui}
    </>
  );
}
