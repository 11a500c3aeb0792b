import type { Notice } from '../parts/part.js';
import { plainJson } from '../plain-json.js';
import type { ApprovalData, CommonUiMessageChunk } from './ui-message-chunk.js';

/** What a tool waits for, of whatever agent: a data part of its own, which stands for the newest that is known. */
export const toolNoticeChunks = (notice: Notice): readonly CommonUiMessageChunk[] => {
  switch (notice.name) {
    case 'approvalRequested': {
      const { name: _, ticket = {}, ...use } = notice;
      return [approval({ ...use, status: 'requested', ...ticket })];
    }
    case 'approvalDecided': {
      const { name: _, approved, ...use } = notice;
      return [approval({ ...use, status: approved ? 'approved' : 'denied' })];
    }
    case 'suspended': {
      const { name: _, request, ...use } = notice;
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
