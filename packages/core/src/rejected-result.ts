import { freezeResult } from './frozen.js';
import { textBlock, type ToolResultBlock } from './message.js';

/** What stands for a result that an interceptor would not have. */
export const rejectedResult = (toolUseId: string): ToolResultBlock =>
  freezeResult({
    type: 'tool_result',
    toolUseId,
    content: [textBlock('The result of this tool was rejected.')],
    isError: true,
  });
