import { isForClient } from '../inbound.js';
import type { Masks } from '../masks.js';
import type { Notice } from '../parts/part.js';
import { plainJson } from '../plain-json.js';
import type { ApprovalData, CommonUiMessageChunk } from './ui-message-chunk.js';

/** Approvals and suspensions of any agent: one data part per tool call, which later chunks update. */
export const toolNoticeChunks = (notice: Notice, masks: Masks): readonly CommonUiMessageChunk[] => {
  switch (notice.name) {
    case 'approvalRequested': {
      const { name: _, approvalToken, ...use } = notice;
      return [approval({ ...use, status: 'requested', ...approvalToken })];
    }
    case 'approvalDecided': {
      const { name: _, approved, reason: _reason, by: _by, ...use } = notice;
      const status = approved ? 'approved' : 'denied';
      return [approval({ ...use, status, ...masks.denial(notice) })];
    }
    case 'suspended': {
      const { name: _, request, from: _from, ...use } = notice;
      if (!isForClient(notice)) return [];
      const data = { ...use, request: plainJson(request) };
      return [{ type: 'data-suspended', id: use.toolCallId, data }];
    }
    case 'uncertain': {
      const { name: _, ...data } = notice;
      return [{ type: 'data-uncertain', id: data.toolCallId, data }];
    }
    default:
      return [];
  }
};

const approval = (data: ApprovalData): CommonUiMessageChunk => ({
  type: 'data-approval',
  id: data.toolCallId,
  data,
});
