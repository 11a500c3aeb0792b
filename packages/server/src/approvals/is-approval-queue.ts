import { having, type Rule } from '@millrace/core/adapter';

export const isApprovalQueue: Rule = having('decide', 'an approvalQueue()');
