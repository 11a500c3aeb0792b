import { ok, strictEqual } from './assert.js';
import { asyncScheduler, lastValueFrom, take, toArray } from 'rxjs';
import { openDemand } from '../flow/demand.js';
import { frozen, textBlock } from '../values/message.js';
import type { Model, ModelChunk, ModelContext, ModelRequest } from '../models/model.js';
import { randomOf } from '../phases/stream-message.js';
import type { Check } from './verify-events.js';

/** A model context, for tests that ask a model directly. */
export const lentContext = (lent: Partial<ModelContext> = {}): ModelContext => ({
  demand: openDemand,
  scheduler: asyncScheduler,
  report: () => undefined,
  stepId: 'test/1',
  random: randomOf('test/1'),
  ...lent,
});

const question: ModelRequest = {
  messages: [{ id: 'm1', role: 'user', content: [textBlock('What is 2 + 2?')] }],
};

const add = {
  name: 'add',
  description: 'Adds numbers.',
  inputSchema: { type: 'object', properties: { sum: { type: 'string', examples: ['1 + 2'] } } },
};

const afterTools: ModelRequest = {
  tools: [add],
  messages: [
    ...question.messages,
    {
      id: 'm2',
      role: 'assistant',
      content: [{ type: 'tool_call', id: 't1', name: 'add', input: { sum: '2 + 2' } }],
    },
    {
      id: 'm3',
      role: 'tool',
      content: [
        { type: 'tool_result', toolCallId: 't1', content: [textBlock('4')], isError: false },
      ],
    },
  ],
};

/** The contract of models. `create` returns one that can be asked any number of times. */
export const modelContract = (create: () => Model): readonly Check[] => {
  const answer = (request: ModelRequest): Promise<readonly ModelChunk[]> =>
    lastValueFrom(create().stream$(frozen(request), lentContext()).pipe(toArray()));
  return [
    {
      name: 'has a name',
      run: () => {
        ok(create().name.length > 0);
        return Promise.resolve();
      },
    },
    {
      name: 'ends every answer with a finish, followed only by usage and facts',
      run: async () => {
        for (const request of [question, { ...question, tools: [add] }, afterTools]) {
          const chunks = await answer(request);
          const end = chunks.findLastIndex(({ type }) => type === 'finish');
          ok(end >= 0);
          ok(chunks.slice(end + 1).every(({ type }) => type === 'usage' || type === 'facts'));
        }
      },
    },
    {
      name: 'does not change the request',
      run: async () => {
        const before = JSON.stringify(afterTools);
        await answer(afterTools);
        strictEqual(JSON.stringify(afterTools), before);
      },
    },
    {
      name: 'is cold, and each subscription gets a complete answer',
      run: async () => {
        const answer$ = create().stream$(question, lentContext()).pipe(toArray());
        const [first, second] = [await lastValueFrom(answer$), await lastValueFrom(answer$)];
        ok(first.length > 0);
        strictEqual(second.at(-1)?.type, first.at(-1)?.type);
      },
    },
    {
      name: 'can be unsubscribed from after its first chunk, and asked again',
      run: async () => {
        const model = create();
        await lastValueFrom(model.stream$(question, lentContext()).pipe(take(1)));
        const chunks = await lastValueFrom(model.stream$(question, lentContext()).pipe(toArray()));
        ok(chunks.some(({ type }) => type === 'finish'));
      },
    },
    {
      name: 'calls only tools of the request',
      run: async () => {
        const chunks = await answer(question);
        ok(chunks.every(({ type }) => type !== 'toolCall'));
      },
    },
  ];
};
