import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { answerOf, deltasOf } from '../mock/answer.js';
import { type Mock, startMock } from '../mock/start-mock.js';
import { ownAdapters } from '../runner/adapters.js';
import type { Adapter, Open } from '../adapter.js';
import * as anthropicSdk from './anthropic-sdk.js';
import * as floorMessages from './floor-messages.js';
import * as floor from './floor.js';
import * as millraceAnthropic from './millrace-anthropic.js';
import * as millraceDevtoolsPage from './millrace-devtools-page.js';
import * as millraceDevtools from './millrace-devtools.js';
import * as millraceInterceptors from './millrace-interceptors.js';
import * as millrace from './millrace.js';
import * as openaiSdk from './openai-sdk.js';

const adapters: readonly (readonly [string, Open])[] = [
  ['floor', floor.open],
  ['openai-sdk', openaiSdk.open],
  ['millrace', millrace.open],
  ['millrace-interceptors', millraceInterceptors.open],
  ['millrace-devtools', millraceDevtools.open],
  ['millrace-devtools-page', millraceDevtoolsPage.open],
  ['floor-messages', floorMessages.open],
  ['anthropic-sdk', anthropicSdk.open],
  ['millrace-anthropic', millraceAnthropic.open],
];

it('all of them are measured', () => {
  expect(ownAdapters.map(({ name }) => name)).toEqual(adapters.map(([name]) => name));
});

describe.each(adapters)('%s', (_, open) => {
  let mock: Mock;
  let adapter: Adapter;
  beforeAll(async () => {
    mock = await startMock();
    adapter = await open({ baseURL: mock.baseURL });
  });
  afterAll(async () => {
    adapter.close?.();
    await mock.close();
  });

  it.each(['2x3-5', '0x0-30', '12x1-1'])(
    'plays %s: runs the tools and gives the answer',
    async (script) => {
      const deltas: string[] = [];
      const text = await adapter.call(script, { onDelta: (delta) => deltas.push(delta) });
      const count = Number(script.split('-')[1]);
      expect(text).toBe(answerOf(count));
      expect(deltas).toEqual(deltasOf(count));
      expect((await mock.seen()).refused).toEqual([]);
    },
  );

  it('gives the answer to a consumer that pulls', async () => {
    const deltas: string[] = [];
    for await (const delta of adapter.pull?.('1x2-20') ?? []) deltas.push(delta);
    expect(deltas).toEqual(deltasOf(20));
  });

  it('remembers a session', async () => {
    const session = adapter.session?.('one');
    expect(await session?.call('1x2-5')).toBe(answerOf(5));
    expect(await session?.call('1x2-5')).toBe(answerOf(5));
    expect((await mock.seen()).refused).toEqual([]);
  });

  it('S2: releases it when it is aborted', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const call = adapter.call('0x0-9999-5', { onDelta: () => controller.abort(), signal });
    await expect(call).rejects.toThrow();
  });

  it('reports why if the vendor would not answer', async () => {
    await expect(adapter.call('no script')).rejects.toThrow(/plays no script/);
  });
});

it('adapters of Millrace report each chunk of the model', async () => {
  const mock = await startMock();
  let chunks = 0;
  const onModelChunk = (): void => {
    chunks += 1;
  };
  await millrace.open({ baseURL: mock.baseURL, onModelChunk }).call('0x0-40');
  await mock.close();
  expect(chunks).toBeGreaterThanOrEqual(40);
});
