import { isForClient } from '../inbound.js';
import type { Notice } from '../parts/part.js';
import { plainJson } from '../plain-json.js';
import type { ApprovalData, CommonUiMessageChunk } from './ui-message-chunk.js';

/** Approvals and suspensions of any agent: one data part per tool call, which later chunks update. */
export const toolNoticeChunks = (notice: Notice): readonly CommonUiMessageChunk[] => {
  switch (notice.name) {
    case 'approvalRequested': {
      const { name: _, approvalToken, inputSchema, ...use } = notice;
      const schema = approvalToken?.mayEdit === true && inputSchema ? { inputSchema } : {};
      return [approval({ ...use, status: 'requested', ...approvalToken, ...schema })];
    }
    case 'approvalDecided': {
      const { name: _, approved, ...use } = notice;
      return [approval({ ...use, status: approved ? 'approved' : 'denied' })];
    }
    case 'suspended': {
      const { name: _, request, from: _from, ...use } = notice;
      if (!isForClient(notice)) return [];
      const data = { ...use, request: plainJson(request) };
      return [{ type: 'data-suspended', id: use.toolCallId, data }];
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
