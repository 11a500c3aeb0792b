import fc from 'fast-check';
import { type Message, textBlock, type ToolMessage, toolCallsOf } from '../values/message.js';
import type { Memory } from '../values/memory.js';

/** What one call does, for a conversation to be made of. */
export interface Turn {
  readonly inputs: number;
  /** How many tools each message of the model's asks for, and whether somebody speaks to the call behind it. */
  readonly exchanges: readonly { readonly uses: number; readonly steered: boolean }[];
  readonly end: 'answer' | 'failure' | 'suspension';
}

export const user = (id: string, text = `I am ${id}.`): Message => ({
  id,
  role: 'user',
  content: [textBlock(text)],
});

export const answer = (id: string, text = `It is ${id}.`): Message => ({
  id,
  role: 'assistant',
  content: [{ type: 'thinking', text: 'Hm.' }, textBlock(text)],
});

/** A message that asks for tools, and the one that answers it. */
export const exchange = (id: string, uses = 1, waits = false): readonly Message[] => {
  const ids = Array.from({ length: uses }, (_, index) => `${id}-${index}`);
  return [
    {
      id,
      role: 'assistant',
      content: ids.map((use) => ({ type: 'tool_call', id: use, name: 'look', input: { at: use } })),
    },
    {
      id: `${id}/results`,
      role: 'tool',
      content: ids.map((toolCallId, index) => ({
        type: 'tool_result',
        toolCallId,
        content: [textBlock(`seen by ${toolCallId}`)],
        isError: false,
        ...(waits && index === 0 ? { suspended: { request: null, from: 'program' as const } } : {}),
      })),
    },
  ];
};

/** The result that a suspended exchange waits for, as a later call brings it. */
export const brought = (id: string, asked: string): ToolMessage => ({
  id,
  role: 'tool',
  content: [
    {
      type: 'tool_result',
      toolCallId: `${asked}-0`,
      content: [textBlock('at last')],
      isError: false,
    },
  ],
});

/** The appends of calls, in the order in which agents make them. */
export const appendsOf = (turns: readonly Turn[]): readonly (readonly Message[])[] => {
  const appends: Message[][] = [];
  let waiting: string | undefined;
  turns.forEach(({ inputs, exchanges, end }, at) => {
    const call = `c${at}`;
    let next: Message[] = waiting === undefined ? [] : [brought(`${call}/input/0`, waiting)];
    waiting = undefined;
    for (let nth = 1; nth <= inputs; nth += 1) next.push(user(`${call}/input/${nth}`));
    exchanges.forEach(({ uses, steered }, index) => {
      next.push(...exchange(`${call}/${index + 1}`, uses));
      appends.push(next);
      next = steered ? [user(`${call}/input/s${index}/0`)] : [];
    });
    const last = `${call}/${exchanges.length + 1}`;
    if (end === 'answer') next.push(answer(last));
    if (end === 'suspension') {
      next.push(...exchange(last, 2, true));
      waiting = last;
    }
    if (next.length > 0) appends.push(next);
  });
  return appends;
};

const turn: fc.Arbitrary<Turn> = fc.record({
  inputs: fc.integer({ min: 1, max: 2 }),
  exchanges: fc.array(fc.record({ uses: fc.integer({ min: 1, max: 3 }), steered: fc.boolean() }), {
    maxLength: 4,
  }),
  end: fc.constantFrom('answer', 'answer', 'answer', 'failure', 'suspension'),
});

export const someTurns = fc.array(turn, { maxLength: 8 });

/** What a synchronous memory holds. */
export const held = (memory: Memory): readonly Message[] => {
  let messages: readonly Message[] | undefined;
  memory.load$().subscribe({
    next: (loaded) => {
      messages = loaded;
    },
    error: rethrow,
  });
  if (messages === undefined) throw new Error('The memory has not answered at once.');
  return messages;
};

export const add = (memory: Memory, ...messages: readonly Message[]): void => {
  memory.append$(messages).subscribe({ error: rethrow });
};

const rethrow = (error: unknown): never => {
  throw error;
};

export const idsOf = (messages: readonly Message[]): readonly string[] =>
  messages.map(({ id }) => id);

export const useIdsOf = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap((message) =>
    message.role === 'assistant' ? toolCallsOf(message).map(({ id }) => id) : [],
  );
