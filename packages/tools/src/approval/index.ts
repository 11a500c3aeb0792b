// Approvals that a person gives later, also in another process.
export { approveLater } from './approve-later.js';
