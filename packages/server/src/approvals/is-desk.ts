import { having, type Rule } from '@millrace/core/adapter';

/** A desk for approvals. */
export const isDesk: Rule = having('decide', 'what approvalDesk() makes');
