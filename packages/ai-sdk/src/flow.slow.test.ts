import { afterEach, describe, expect, it } from '@jest/globals';
import { createDemand, type ModelChunk } from 'millrace';
import { lentContext, marbles } from 'millrace/testing';
import { at } from '@millrace/wire';
import { firstValueFrom, Subject, toArray } from 'rxjs';
import { aiSdkModel } from './index.js';
import { endInTime } from './parts-stream.js';
import { finish, playParts, text } from './parts.test-support.js';
import { answering, serve, type VendorServer } from './serve.test-support.js';
import { vendors } from './vendors.test-support.js';

const many = (count: number): readonly unknown[] => [
  { type: 'text-start', id: '1' },
  ...Array.from({ length: count }, () => ({ type: 'text-delta', id: '1', delta: 'x' })),
];
/** Until microtasks and the macrotask queue have nothing left. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const settle = async (): Promise<void> => {
  for (let round = 0; round < 20; round += 1) await settled();
};

let server: VendorServer | undefined;
afterEach(() => server?.close());

describe('the stream of a provider', () => {
  it('is opened once demand is, and pulled part by part while it is open', async () => {
    const model = playParts([many(1_000)]);
    const gate = createDemand(4);
    gate.backlog(4);
    const chunks: ModelChunk[] = [];
    const subscription = aiSdkModel(model)
      .stream$({ messages: [] }, lentContext({ demand: gate }))
      .subscribe((chunk) => gate.backlog(chunks.push(chunk) % 5));
    await settle();
    expect(model.asked).toHaveLength(0);
    gate.backlog(0);
    await settle();
    expect(chunks).toHaveLength(4);
    // The start of the text, four deltas, and the part that waits.
    expect(model.counts.pulled).toBeLessThanOrEqual(6);
    gate.backlog(0);
    await settle();
    expect(chunks).toHaveLength(9);
    subscription.unsubscribe();
    await settle();
    expect(model.counts.cancelled).toBe(1);
  });

  it('is asked for once per subscription, and cancelled with its signal when unsubscribed', async () => {
    const model = playParts([many(3)], { holds: true });
    const answer$ = aiSdkModel(model).stream$({ messages: [] }, lentContext());
    expect(model.asked).toHaveLength(0);
    await firstValueFrom(answer$);
    await settle();
    expect(model.asked).toHaveLength(1);
    expect(model.asked[0]?.abortSignal?.aborted).toBe(true);
    expect(model.counts.cancelled).toBe(1);
    await firstValueFrom(answer$);
    expect(model.asked).toHaveLength(2);
  });

  it('is cancelled if it arrives after it was left', async () => {
    const model = playParts([many(3)]);
    const sent = new Subject<void>();
    const slow = {
      ...model,
      doStream: async (options: Parameters<typeof model.doStream>[0]) => {
        const result = await model.doStream(options);
        await firstValueFrom(sent, { defaultValue: undefined });
        return result;
      },
    };
    const subscription = aiSdkModel(slow).stream$({ messages: [] }, lentContext()).subscribe();
    await settle();
    subscription.unsubscribe();
    expect(model.asked[0]?.abortSignal?.aborted).toBe(true);
    sent.complete();
    await settle();
    expect(model.counts).toEqual({ pulled: 0, cancelled: 1 });
  });

  it('ends 50 ms after its finish part, 200 ms after a failure, or with its own end', () => {
    const isError = (part: unknown): boolean => at(part, 'type') === 'error';
    marbles(({ cold, expectObservable, expectSubscriptions, scheduler }) => {
      const values = { a: { type: 'ping' }, e: { type: 'error' }, f: finish() };
      const open$ = cold('a-f-a-----', values);
      expectObservable(open$.pipe(endInTime(scheduler, isError))).toBe('a-f-a 47ms |', values);
      expectSubscriptions(open$.subscriptions).toBe('^---- 47ms !');
      const fails$ = cold('a-e-a-----', values);
      expectObservable(fails$.pipe(endInTime(scheduler, isError))).toBe('a-e-a 197ms |', values);
      expectSubscriptions(fails$.subscriptions).toBe('^---- 197ms !');
      const counts$ = cold('a-e-f-----', values);
      expectObservable(counts$.pipe(endInTime(scheduler, isError))).toBe('a-e-f 49ms |', values);
      expectSubscriptions(counts$.subscriptions).toBe('^---- 49ms !');
      const again$ = cold('e 89ms e 89ms e 89ms e', values);
      expectObservable(again$.pipe(endInTime(scheduler, isError))).toBe(
        'e 89ms e 89ms e 19ms |',
        values,
      );
      expectSubscriptions(again$.subscriptions).toBe('^ 199ms !');
      const ends$ = cold('a-f-(a|)', values);
      expectObservable(ends$.pipe(endInTime(scheduler, isError))).toBe('a-f-(a|)', values);
      expectSubscriptions(ends$.subscriptions).toBe('^---!');
      const left$ = cold('a-f-a-----', values);
      expectObservable(left$.pipe(endInTime(scheduler, isError)), '^--!').toBe('a-f', values);
      expectSubscriptions(left$.subscriptions).toBe('^--!');
    });
  });

  it('a slow reader stops the socket of each provider', async () => {
    for (const { wire, create } of vendors) {
      const filler = Array.from({ length: 3_000 }, () => 'x'.repeat(5_000));
      server = await serve(answering(wire, { text: filler }));
      const gate = createDemand(2);
      let count = 0;
      const subscription = aiSdkModel(create(server.url), { retry: false })
        .stream$(
          { messages: [{ id: '1', role: 'user', content: [{ type: 'text', text: 'Hi!' }] }] },
          lentContext({ demand: gate }),
        )
        .subscribe(() => gate.backlog((count += 1)));
      let before = -1;
      while (before !== server.counts.written || count === 0) {
        before = server.counts.written;
        await settle();
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(count).toBeLessThan(10);
      expect(server.counts.written).toBeLessThan(10_000_000);
      subscription.unsubscribe();
      await server.close();
      server = undefined;
    }
  });
});

it('an answer is read to its end, so its socket can be used again', async () => {
  const model = playParts([[...text('1', 'Hi.'), finish()]]);
  await firstValueFrom(aiSdkModel(model).stream$({ messages: [] }, lentContext()).pipe(toArray()));
  await settle();
  expect(model.counts.cancelled).toBe(0);
});
