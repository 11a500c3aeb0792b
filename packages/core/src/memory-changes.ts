import type { ReportedPayload } from './events.js';
import { freezeMessage } from './frozen.js';
import type { MemoryChange } from './memory.js';

export type MessagesChange = Extract<
  ReportedPayload,
  { type: 'messagesAppended' | 'messagesRemoved' }
>;

export const memoryChanges = ({ appended, removed }: MemoryChange): readonly MessagesChange[] => [
  ...(removed.length > 0
    ? [{ type: 'messagesRemoved', ids: Object.freeze([...removed]) } as const]
    : []),
  ...(appended.length > 0
    ? [{ type: 'messagesAppended', messages: Object.freeze(appended.map(freezeMessage)) } as const]
    : []),
];
