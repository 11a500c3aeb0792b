import { type Message, type Model, type ModelChunk, textOf } from 'millrace';
import { defer, from } from 'rxjs';
import { playedCall } from './played-call.js';

/** A model in the process: it plays a script of at most one turn with tools, and takes no other results than theirs. */
export const playedModel = (name: string): Model => {
  const { uses, deltas, check } = playedCall(name);
  const finish: ModelChunk = { type: 'finish', finish: 'stop' };
  const asking = [
    ...uses.map((use, index): ModelChunk => ({ type: 'toolCall', index, ...use })),
    finish,
  ];
  const answer = [...deltas.map((text): ModelChunk => ({ type: 'text', text })), finish];
  const chunksFor = (last: Message | undefined): readonly ModelChunk[] => {
    if (last?.role !== 'tool') return uses.length > 0 ? asking : answer;
    check(last.content.map((result) => ({ id: result.toolCallId, text: textOf(result) })));
    return answer;
  };
  return { name, stream$: ({ messages }) => defer(() => from(chunksFor(messages.at(-1)))) };
};
