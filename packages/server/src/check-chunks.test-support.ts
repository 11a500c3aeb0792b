import type { UiMessageChunk } from './index.js';

type Chunk = UiMessageChunk<7> | UiMessageChunk;

/** Says what is wrong with the chunks of one message: whatever starts must end, and before the message does. */
export const chunkComplaints = (chunks: readonly Chunk[]): readonly string[] => {
  const complaints: string[] = [];
  const open = new Set<string>();
  const begin = (what: string): void => {
    if (open.has(what)) complaints.push(`${what} begins twice`);
    open.add(what);
  };
  const end = (what: string): void => {
    if (!open.delete(what)) complaints.push(`${what} ends without a start`);
  };
  const needs = (what: string): void => {
    if (!open.has(what)) complaints.push(`${what} is not open`);
  };
  let ended = false;
  for (const chunk of chunks) {
    if (ended) complaints.push(`'${chunk.type}' comes behind the end`);
    if (chunk.type !== 'start') needs('message');
    switch (chunk.type) {
      case 'start':
        begin('message');
        break;
      case 'start-step':
        begin('step');
        break;
      case 'finish-step':
        end('step');
        break;
      case 'text-start':
      case 'reasoning-start':
        begin(`block ${chunk.id}`);
        break;
      case 'text-delta':
      case 'reasoning-delta':
        needs(`block ${chunk.id}`);
        break;
      case 'text-end':
      case 'reasoning-end':
        end(`block ${chunk.id}`);
        break;
      case 'tool-input-start':
        begin(`tool ${chunk.toolCallId}`);
        break;
      case 'tool-input-delta':
      case 'tool-input-available':
        needs(`tool ${chunk.toolCallId}`);
        break;
      case 'tool-output-available':
        if (chunk.preliminary === true) needs(`tool ${chunk.toolCallId}`);
        else end(`tool ${chunk.toolCallId}`);
        break;
      case 'tool-output-error':
      case 'tool-output-denied':
        end(`tool ${chunk.toolCallId}`);
        break;
      case 'data-agent':
        if (chunk.data.status === 'running') begin(`agent ${chunk.id ?? ''}`);
        else end(`agent ${chunk.id ?? ''}`);
        break;
      case 'reset-step':
        if ([...open].some((it) => it !== 'message' && it !== 'step')) {
          complaints.push(`reset with ${[...open].join()}`);
        }
        break;
      case 'finish':
      case 'abort':
        end('message');
        ended = true;
        // Tools that are suspended wait for the client.
        if (chunk.type === 'finish' && chunk.finishReason === 'tool-calls') {
          open.forEach((it) => it.startsWith('tool ') && open.delete(it));
        }
        if (open.size > 0) complaints.push(`it ends with ${[...open].join()}`);
        break;
      default:
        break;
    }
  }
  if (!ended) complaints.push('it does not end');
  return complaints;
};
