/** An entry of its own (`@agent-rendering/core/history`): the turns that the connection did not send. */

export { HistoryGap, HistoryPages, PAGE_TURNS } from "./chat/history_pages.js";
