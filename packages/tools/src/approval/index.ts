// Approvals that a person gives later, also in another process.
export { approveLater, type ApproveLaterOptions } from './approve-later.js';
