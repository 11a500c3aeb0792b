import { describe, expect, it } from '@jest/globals';
import { createAgent, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { lastValueFrom } from 'rxjs';
import type { Open } from '../../adapter.js';
import { lookup, weatherOf } from '../../lookup.js';
import { answerOf, deltasOf } from '../../mock/answer.js';
import { toolAdapters } from '../../runner/adapters.js';
import { millraceWith } from '../millrace-with.js';
import { compile } from './core-ajv.js';
import * as floor from './floor.js';
import * as millraceApprove from './millrace-approve.js';
import * as millraceInterceptors from './millrace-interceptors.js';
import * as millrace from './millrace.js';
import { playedCall, playedCalls } from './played-call.js';
import { playedModel } from './played-model.js';

const adapters: readonly (readonly [string, Open])[] = [
  ['floor', floor.open],
  ['millrace', millrace.open],
  ['millrace-interceptors', millraceInterceptors.open],
  ['millrace-approve', millraceApprove.open],
];

it('all of them are measured', () => {
  expect(toolAdapters.map(({ name }) => name)).toEqual(adapters.map(([name]) => name));
});

describe.each(adapters)('%s', (_, open) => {
  it.each(['0x0-2', '1x1-1', '1x16-3'])(
    'plays %s without a mock: runs the tools and gives the answer, again and again',
    async (script) => {
      const adapter = await open({ baseURL: '' });
      const count = Number(script.split('-')[1]);
      for (let times = 0; times < 2; times += 1) {
        const deltas: string[] = [];
        const text = await adapter.call(script, { onDelta: (delta) => deltas.push(delta) });
        expect(text).toBe(answerOf(count));
        expect(deltas).toEqual(deltasOf(count));
      }
    },
  );

  it('says what it cannot play', async () => {
    const adapter = await open({ baseURL: '' });
    await expect((async () => adapter.call('2x1-1'))()).rejects.toThrow(/one turn of tools/);
  });
});

describe('a model in the process', () => {
  const results = [0, 1].map((day) => ({ id: `call_1_${day}`, text: weatherOf('Oslo', day) }));
  const [first = { id: '', text: '' }, second = first] = results;

  it('takes all results in their order, and no others', () => {
    const { uses, check } = playedCall('1x2-1');
    expect(uses.map(({ id }) => id)).toEqual(['call_1_0', 'call_1_1']);
    expect(() => check(results)).not.toThrow();
    for (const others of [
      [],
      [first],
      [second, first],
      [...results, first],
      [first, { ...second, text: '' }],
      [first, { ...second, id: '' }],
    ]) {
      expect(() => check(others)).toThrow(/not the results/);
    }
  });

  it('makes what it says once', () => {
    const callOf = playedCalls();
    expect(callOf('1x2-1')).toBe(callOf('1x2-1'));
    expect(callOf('1x3-1')).not.toBe(callOf('1x2-1'));
  });

  it('fails a call whose tool says something else', async () => {
    const { name, description, parameters } = lookup;
    const other = tool({ name, description, input: jsonSchema(parameters), run: () => 'Snow.' });
    const agent = createAgent({ model: playedModel('1x2-1'), tools: [other] });
    await expect(lastValueFrom(agent.call$('?'))).rejects.toThrow(/not the results/);
  });
});

it('an approver is asked of each use', async () => {
  const asked: string[] = [];
  const approve = ({ toolCallId }: { readonly toolCallId: string }): boolean => {
    asked.push(toolCallId);
    return true;
  };
  await millraceWith({ modelOf: playedModel, approve }, { baseURL: '' }).call('1x3-1');
  expect(asked).toEqual(['call_1_0', 'call_1_1', 'call_1_2']);
});

it('the floor validates as it says', () => {
  const isValid = compile(lookup.parameters);
  expect(isValid({ city: 'Oslo', day: 1 })).toBe(true);
  expect(isValid({ city: 'Oslo', day: '1' })).toBe(false);
  expect(isValid({ city: 'Oslo' })).toBe(false);
});
