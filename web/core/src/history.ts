/** Separate entry (`@agent-rendering/core/history`): turns that the connection did not send. */

export { HistoryGap, HistoryPages, PAGE_TURNS } from "./chat/history_pages.js";
