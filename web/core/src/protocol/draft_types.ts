/**
 * Types and constants of the draft's client package, under the same names: code written for that package
 * compiles when only the package name is changed. The types of this package's own protocol are in `Wire`.
 */

import type { VERSIONS } from "./generated/tables.js";

export const ARP_VERSION = 1;

export const ArpMessageType = {
  Hello: "hello",
  Delta: "delta",
  ToolStart: "tool_start",
  ToolEnd: "tool_end",
  Render: "render",
  Patch: "patch",
  Error: "error",
  Commit: "commit",
  Input: "input",
} as const;

export type ArpMessageTypeValue = (typeof ArpMessageType)[keyof typeof ArpMessageType];

export type AnyProps = Record<string, unknown>;

/** A message in either direction. */
export interface ArpMessage {
  v: number;
  type: string;
  session_id?: string;
  payload?: AnyProps;
  components?: ArpComponent[];
  ops?: ArpPatchOp[];
  final?: boolean;
  tool_name?: string;
}

export interface ArpComponent {
  id: string;
  type: string;
  version?: number;
  props: AnyProps;
  fallback?: ArpComponent;
}

export interface ArpPatchOp {
  op: "update" | "append" | "insert" | "remove" | "replace" | "reorder";
  target?: string;
  path?: string;
  value?: unknown;
  after?: string;
  component?: ArpComponent;
}

export interface ArpHello {
  v: number;
  type: "hello";
  capabilities: ArpCapabilities;
}

/** Capabilities of the agent side. */
export interface ArpCapabilities {
  components: string[];
  features: string[];
}

export interface ArpInputMessage {
  v: number;
  type: "input";
  session_id: string;
  source_component?: string;
  input_type: string;
  data: AnyProps;
}

/** A component that a tool rendered. */
export interface ToolRenderEvent {
  tool: string;
  component: string;
  props: AnyProps;
}

export interface StatusCardProps {
  status: "success" | "error" | "warning" | "info";
  title: string;
  message?: string;
  sections?: Array<{ label: string; content: string; style?: string }>;
  _restored?: boolean;
}

export interface TabData {
  name: string;
  headers: string[];
  rows: string[][];
  highlight?: number[];
}

export interface TableProps {
  title?: string;
  headers: string[];
  rows: string[][];
  tabs?: TabData[];
  highlight?: number[];
}

export interface CodeTabData {
  name: string;
  language?: string;
  code: string;
}

export interface CodeBlockProps {
  title?: string;
  language?: string;
  code?: string;
  tabs?: CodeTabData[];
}

export interface DiffProps {
  title?: string;
  before_label?: string;
  after_label?: string;
  before: string;
  after: string;
  language?: string;
}

export interface KeyValueProps {
  title?: string;
  items: Array<{ key: string; value: string; style?: string }>;
}

export interface ProgressProps {
  title?: string;
  steps: Array<{ name: string; status: string; detail?: string }>;
}

export interface ConfirmProps {
  title: string;
  message?: string;
  confirm_label?: string;
  deny_label?: string;
  _restored?: boolean;
}

export interface ChoicesProps {
  title: string;
  options: string[];
  style?: "buttons" | "list";
  _restored?: boolean;
}

export interface FormViewProps {
  title?: string;
  fields: Array<{
    name: string;
    label?: string;
    field_type?: string;
    value?: string;
    required?: boolean;
    options?: string[];
  }>;
  submit_label?: string;
  submit_action?: string;
}

export interface ChartDataset {
  label: string;
  data: number[];
  color?: string;
}

export interface ChartProps {
  type: "line" | "bar" | "pie" | "scatter" | "area";
  title?: string;
  labels: string[];
  datasets: ChartDataset[];
  height?: number;
  x_title?: string;
  y_title?: string;
  unit?: string;
}

export interface ProductCardItem {
  name: string;
  price: string;
  image?: string;
  brand?: string;
  description?: string;
  badge?: string;
  url?: string;
}

export interface ProductCardsProps {
  title?: string;
  cards: ProductCardItem[];
}

export interface ChatSession {
  id: string;
  workflow_name: string;
  workflow_path: string;
  title: string;
  owner?: string;
  created_at: string;
  updated_at: string;
  message_count: number;
}

export interface ChatSessionDetail extends ChatSession {
  messages: ChatMessage[];
}

export interface ChatMessage {
  role: "user" | "assistant";
  content: string;
  timestamp: string;
  ui_events?: ToolRenderEvent[];
}

export interface StepLogEntry {
  level: "info" | "warn" | "error";
  message: string;
}

export interface StepRenderPayload {
  component: string;
  props: AnyProps;
}

export interface StepEvent {
  name: string;
  status: "start" | "end" | "failed" | "retry" | "log" | "render";
  duration_ms?: number;
  error?: string;
  attempt?: number;
  delay_ms?: number;
  log?: StepLogEntry;
  render?: StepRenderPayload;
}

/** Every component type of the catalog. */
export type BuiltInComponentType = keyof typeof VERSIONS;
