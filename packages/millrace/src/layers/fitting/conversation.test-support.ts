import fc from 'fast-check';
import {
  freezeMessage,
  type Message,
  textBlock,
  type ToolCallBlock,
} from '../../values/message.js';
import type { Session } from '../sessions/index.js';

export const user = (id: string, said: string): Message =>
  freezeMessage({ id, role: 'user', content: [textBlock(said)] });

export const assistant = (id: string, said: string): Message =>
  freezeMessage({ id, role: 'assistant', content: [textBlock(said)] });

/** An assistant's message that asks for tools, one for each output, and the message of their results. */
export const used = (
  id: string,
  ...outputs: readonly string[]
): readonly [asked: Message, results: Message] => {
  const idOf = (index: number): string => (outputs.length === 1 ? id : `${id}.${index}`);
  return [
    freezeMessage({
      id,
      role: 'assistant',
      content: outputs.map((_, index): ToolCallBlock => ({
        type: 'tool_call',
        id: idOf(index),
        name: 'look',
        input: {},
      })),
    }),
    freezeMessage({
      id: `${id}/results`,
      role: 'tool',
      content: outputs.map((output, index) => ({
        type: 'tool_result',
        toolCallId: idOf(index),
        content: [textBlock(output)],
        isError: false,
      })),
    }),
  ];
};

export const isTask = ({ id }: Message): boolean => id.startsWith('task');

export const idsOf = (messages: readonly Message[]): readonly string[] =>
  messages.map(({ id }) => id);

const said = fc.oneof(
  fc.nat(400).map((size) => 'y'.repeat(size)),
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc.nat(60).map((size) => '{"a":"b"},'.repeat(size)),
);

const step = fc.oneof(
  fc.record({
    kind: fc.constant('pair' as const),
    outputs: fc.array(said, { minLength: 1, maxLength: 3 }),
  }),
  fc.record({ kind: fc.constant('said' as const), outputs: fc.tuple(said) }),
);

const stepsOf = (name: string, steps: readonly { kind: string; outputs: readonly string[] }[]) =>
  steps.flatMap(({ kind, outputs }, index) =>
    kind === 'pair'
      ? used(`${name}.${index}`, ...outputs)
      : [assistant(`${name}.${index}`, outputs[0] ?? '')],
  );

/** Conversations of a history, a task, what was done for it, perhaps more that was said of the task, and feedback. */
export const conversations = fc
  .record({
    turns: fc.array(fc.tuple(said, fc.array(step, { maxLength: 4 })), { maxLength: 6 }),
    task: said,
    done: fc.array(fc.array(said, { minLength: 1, maxLength: 3 }), { maxLength: 6 }),
    more: fc.option(said),
    later: fc.array(fc.array(said, { minLength: 1, maxLength: 3 }), { maxLength: 3 }),
    feedback: fc.option(said),
  })
  .map(({ turns, task, done, more, later, feedback }) => [
    ...turns.flatMap(([asked, steps], index) => [
      user(`h${index}`, asked),
      ...stepsOf(`h${index}`, steps),
    ]),
    user('task', task),
    ...done.flatMap((outputs, index) => used(`d${index}`, ...outputs)),
    ...(more === null ? [] : [user('task2', more)]),
    ...later.flatMap((outputs, index) => used(`l${index}`, ...outputs)),
    ...(feedback === null ? [] : [assistant('f0', 'Hm.'), user('f1', feedback)]),
  ]);

/** A conversation as they are: questions, answers, code, and tools that bring JSON. */
export const longConversation = (length: number): readonly Message[] => {
  const words =
    'The gate was left open because it leaked anyway, and a repair would pay for itself. ';
  const rows = (index: number): string =>
    JSON.stringify(
      Array.from({ length: 6 }, (_, row) => ({ id: index * 10 + row, level: 1432.5, ok: row > 2 })),
    );
  const turns = Array.from({ length: Math.ceil(length / 4) }, (_, index) => [
    user(`q${index}`, `${words} What of number ${index}?`),
    ...used(`t${index}`, rows(index)),
    assistant(`a${index}`, words.repeat(4)),
  ]).flat();
  return Object.freeze([...turns.slice(0, length - 1), user('task', 'And what now?')]);
};

/** Puts messages into the memory of a session. */
export const remember = (session: Session, messages: readonly Message[]): Promise<void> =>
  session.memory.append$(messages).forEach(() => undefined);
