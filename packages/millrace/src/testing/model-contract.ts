import { ok, strictEqual } from './assert.js';
import { asyncScheduler, lastValueFrom, take, toArray } from 'rxjs';
import { openDemand } from '../flow/demand.js';
import { frozen, textBlock } from '../values/message.js';
import type { Model, ModelChunk, ModelContext, ModelRequest } from '../models/model.js';
import { randomOf } from '../phases/stream-message.js';
import { type Check, checksOf } from './verify-events.js';

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

const answer = (model: Model, request: ModelRequest): Promise<readonly ModelChunk[]> =>
  lastValueFrom(model.stream$(frozen(request), lentContext()).pipe(toArray()));

/** The contract of models. `create` returns one that can be asked any number of times. */
export const modelContract = (create: () => Model): readonly Check[] =>
  checksOf(create, {
    'has a name': ({ name }) => ok(name.length > 0),
    'ends every answer with a finish, followed only by usage and facts': async (model) => {
      for (const request of [question, { ...question, tools: [add] }, afterTools]) {
        const chunks = await answer(model, request);
        const end = chunks.findLastIndex(({ type }) => type === 'finish');
        ok(end >= 0);
        ok(chunks.slice(end + 1).every(({ type }) => type === 'usage' || type === 'facts'));
      }
    },
    'does not change the request': async (model) => {
      const before = JSON.stringify(afterTools);
      await answer(model, afterTools);
      strictEqual(JSON.stringify(afterTools), before);
    },
    'is cold, and each subscription gets a complete answer': async (model) => {
      const answer$ = model.stream$(question, lentContext()).pipe(toArray());
      const [first, second] = [await lastValueFrom(answer$), await lastValueFrom(answer$)];
      ok(first.length > 0);
      strictEqual(second.at(-1)?.type, first.at(-1)?.type);
    },
    'can be unsubscribed from after its first chunk, and asked again': async (model) => {
      await lastValueFrom(model.stream$(question, lentContext()).pipe(take(1)));
      const chunks = await lastValueFrom(model.stream$(question, lentContext()).pipe(toArray()));
      ok(chunks.some(({ type }) => type === 'finish'));
    },
    'calls only tools of the request': async (model) => {
      const chunks = await answer(model, question);
      ok(chunks.every(({ type }) => type !== 'toolCall'));
    },
  });
