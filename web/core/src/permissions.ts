/** Separate entry (`@agent-rendering/core/permissions`): the permissions to ask the user for, and their answers. */

export { readInput, textOf } from "./chat/edited_input.js";
export { PermissionRequests } from "./chat/permission_requests.js";
export type { PermissionFault } from "./chat/permission_requests.js";
