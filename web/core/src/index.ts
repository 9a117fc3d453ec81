/** The client of the Agent Rendering Protocol: see README.md for how its parts go together. */

export type * as Wire from "./generated/wire.js";
export type { Json, JsonObject, Component, CoreProps, ErrorPayload, FileRef } from "./generated/wire.js";
export { VERSIONS } from "./generated/tables.js";

export { ArpClient } from "./client.js";
export type { Presented, SendOptions, TurnOptions } from "./client.js";
export type { ArpClientOptions } from "./options.js";
export { newId } from "./options.js";
export type { ArpClientCallbacks } from "./callbacks.js";
export { questionState } from "./answers.js";
export { isGreeting } from "./greeting.js";
export { offered } from "./offered.js";
export type { Offered } from "./offered.js";
export { parseJson } from "./exact_json.js";
export { repeatsKey } from "./shape.js";
export type { InputType, QuestionState } from "./answers.js";

export { openPermissions } from "./questions.js";
export type { OpenPermission } from "./questions.js";

export { Store } from "./store.js";
export type { Status } from "./store.js";
export type { Cell, Schedule } from "./cells.js";
export { isTextPart, Screen } from "./screen.js";
export type { Mark, ToolRun, TurnState, TurnStatus } from "./screen.js";
export { RendererConnection } from "./connection.js";
export type { LinkState, Phase } from "./driver.js";
export type { Transport } from "./address.js";
export { fileAddress } from "./file_address.js";
export type { Attachment, Outgoing, SendPhase, Storage } from "./outbox.js";

export { connectSSE, streamSSE } from "./stream_sse.js";
export type { StreamSSEOptions } from "./stream_sse.js";
export type { SSECallbacks, ToolEvent } from "./workflow_stream.js";
export { createSessionAPI } from "./sessions.js";
export { ArpError } from "./session_types.js";
export type {
  ChatListener,
  ChatRow,
  HistoryMessage,
  HistoryTool,
  Remainder,
  SessionAPI,
  SessionAPIOptions,
  SessionPage,
  WorkflowInfo,
} from "./session_types.js";
export { BUILT_IN_COMPONENTS, createComponentRegistry } from "./registry.js";
export type { ComponentRegistry } from "./registry.js";
export { arpMessageToToolRenderEvent } from "./render_event.js";
export { ARP_VERSION, ArpMessageType } from "./draft_types.js";
export type {
  ArpCapabilities,
  ArpComponent,
  ArpHello,
  ArpInputMessage,
  ArpMessage,
  ArpMessageTypeValue,
  ArpPatchOp,
  BuiltInComponentType,
  ChartDataset,
  ChartProps,
  ChatMessage,
  ChatSession,
  ChatSessionDetail,
  ChoicesProps,
  CodeBlockProps,
  CodeTabData,
  ConfirmProps,
  DiffProps,
  FormViewProps,
  KeyValueProps,
  ProductCardItem,
  ProductCardsProps,
  ProgressProps,
  StatusCardProps,
  StepEvent,
  StepLogEntry,
  StepRenderPayload,
  TabData,
  TableProps,
  ToolRenderEvent,
} from "./draft_types.js";
