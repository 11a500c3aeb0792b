import { type Message, type Model, type ModelChunk, textOf } from 'millrace';
import { finish, text, toolCall } from 'millrace/testing';
import { concatMap, defer, delay, from, of, tap } from 'rxjs';
import { answerOf } from './answer.js';
import type { Plan } from './plan.js';

/** How a script is played. */
export interface Pace {
  /** Between two chunks, in milliseconds. */
  readonly chunkMs: number;
  /** Is told that the model is asked. */
  readonly onAsk: () => void;
  /** Is told of each chunk. */
  readonly onChunk: () => void;
}

/** The start of a message to a running call. */
export const hint = 'Mind the gap.';

/** Whether a message was said to a call that ran. */
export const isHint = (message: Message): boolean =>
  message.role === 'user' && textOf(message).startsWith(hint);

/** A model that asks for what a plan says, and then answers with what came of it. Where it is, it reads from the conversation. */
export const scriptModel = (
  planFor: (messages: readonly Message[]) => Plan,
  { chunkMs, onAsk, onChunk }: Pace,
): Model => ({
  name: 'script',
  stream$: ({ messages }, { scheduler }) =>
    defer(() => {
      onAsk();
      // Earlier calls of the session are no part of this one, and a hint is only by the way.
      const asked = messages.findLastIndex((it) => it.role === 'user' && !isHint(it));
      const own = messages.slice(asked);
      const turn = own.filter(({ role }) => role === 'assistant').length;
      const uses = planFor(own)[turn];
      const chunks = uses === undefined ? said(answerOf(own)) : asks(turn, uses);
      return from([...chunks, finish()]).pipe(
        concatMap((chunk) =>
          chunkMs === 0 ? of(chunk) : of(chunk).pipe(delay(chunkMs, scheduler)),
        ),
        tap(onChunk),
      );
    }),
});

const asks = (turn: number, uses: Plan[number]): readonly ModelChunk[] => [
  ...said(`Turn ${turn + 1} of the script`),
  ...uses.map(({ tool, item }) =>
    toolCall(tool, tool === 'clerk' ? { user_prompt: item } : { item }),
  ),
];

const said = (words: string): readonly ModelChunk[] =>
  words.split(/(?<= )/u).map((word) => text(word));
