/** An entry of its own (`@agent-rendering/core/permissions`): the permissions that wait for an answer, for whatever asks. */

export { readInput, textOf } from "./chat/edited_input.js";
export { PermissionRequests } from "./chat/permission_requests.js";
export type { PermissionFault } from "./chat/permission_requests.js";
