export {
  approvalQueue,
  type ApprovalQueue,
  type ApprovalQueueOptions,
  type ChatApprovals,
} from './approval-queue.js';
export type { ApprovalKey } from './approval-keys.js';
export type { ApprovalDesk, PendingApproval } from './pending-requests.js';
export { approvalsHandler, type ApprovalsHandlerOptions } from './approvals-handler.js';
export type { VerdictOfClient } from './read-verdict.js';
