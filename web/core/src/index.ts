/** The client of the Agent Rendering Protocol. README.md describes its parts. */

export type * as Wire from "./protocol/generated/wire.js";
export type { Json, JsonObject, Component, CoreProps, ErrorPayload, FileRef } from "./protocol/generated/wire.js";
export { VERSIONS } from "./protocol/generated/tables.js";

export { ArpClient } from "./client/client.js";
export type { Presented, SendOptions, TurnOptions } from "./client/client.js";
export type { ArpClientOptions } from "./client/options.js";
export { newId } from "./protocol/new_id.js";
export type { ArpClientCallbacks } from "./client/callbacks.js";
export { questionState } from "./protocol/answers.js";
export { isGreeting } from "./chat/greeting.js";
export { offered } from "./client/offered.js";
export type { Offered } from "./client/offered.js";
export { parseJson } from "./protocol/exact_json.js";
export { repeatsKey } from "./protocol/repeated_keys.js";
export type { InputType, QuestionState } from "./protocol/answers.js";

export { openPermissions } from "./client/questions.js";
export type { OpenPermission } from "./client/questions.js";

export { Store } from "./client/store.js";
export type { Status } from "./client/store.js";
export type { Cell, Schedule } from "./client/cells.js";
export { isTextPart, Screen } from "./protocol/screen.js";
export type { Mark, ToolRun, TurnState, TurnStatus } from "./protocol/screen.js";
export { RendererConnection } from "./client/connection.js";
export type { LinkState, Phase } from "./transport/driver.js";
export type { Transport } from "./transport/address.js";
export { fileAddress } from "./client/file_address.js";
export type { Attachment, Outgoing, SendPhase, Storage } from "./client/outbox.js";

export { connectSSE, streamSSE } from "./draft/stream_sse.js";
export type { StreamSSEOptions } from "./draft/stream_sse.js";
export type { SSECallbacks, ToolEvent } from "./draft/workflow_stream.js";
export { createSessionAPI } from "./sessions/sessions.js";
export { ArpError } from "./sessions/session_types.js";
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
} from "./sessions/session_types.js";
export { BUILT_IN_COMPONENTS, createComponentRegistry } from "./draft/registry.js";
export type { ComponentRegistry } from "./draft/registry.js";
export { arpMessageToToolRenderEvent } from "./draft/render_event.js";
export { ARP_VERSION, ArpMessageType } from "./protocol/draft_types.js";
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
} from "./protocol/draft_types.js";
