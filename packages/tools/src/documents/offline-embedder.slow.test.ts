import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, tap } from 'rxjs';
import { offlineEmbedder } from './offline-embedder.js';

const similarity = (a: readonly number[] = [], b: readonly number[] = []): number =>
  a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);

describe('offlineEmbedder', () => {
  it('embeds texts by their meaning, in order, for any text', async () => {
    const { embed$, id } = offlineEmbedder();
    expect(id).toContain('energetic-ai');
    const texts = [
      'How do I stop an agent?',
      'Cancelling a running assistant',
      'The price of wheat',
      '',
      '\ud800\u0000',
    ];
    const vectors = await lastValueFrom(embed$(texts));
    expect(vectors.map(({ length }) => length)).toEqual([512, 512, 512, 512, 512]);
    expect(vectors.flat().every(Number.isFinite)).toBe(true);
    const [stop, cancel, wheat] = vectors;
    expect(similarity(stop, cancel)).toBeGreaterThan(similarity(stop, wheat) + 0.1);
    expect(await lastValueFrom(embed$([]))).toEqual([]);
  });

  it('leaves the event loop free, keeps concurrent requests apart, and survives those who leave', async () => {
    const { embed$ } = offlineEmbedder();
    let turns = 0;
    const count = (): void => {
      turns += 1;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    embed$(Array.from({ length: 40 }, (_, at) => `text ${at}`))
      .subscribe({ error: () => undefined })
      .unsubscribe();
    const [[one], [two]] = await Promise.all([
      lastValueFrom(embed$(['The same text.'])),
      lastValueFrom(embed$(['Another text.'])),
    ]);
    clearImmediate(next);
    expect(turns).toBeGreaterThan(100);
    const [[again]] = [await lastValueFrom(embed$(['The same text.']))];
    expect(similarity(one, again)).toBeCloseTo(1);
    expect(similarity(one, two)).toBeLessThan(0.95);
  });

  it('I21: answers each user in their own async context, from one thread', async () => {
    const { embed$ } = offlineEmbedder();
    const user = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const embedded = async (): Promise<unknown> =>
      lastValueFrom(embed$(['A text.']).pipe(tap(() => seen.push(user.getStore()))));
    await Promise.all(['ann', 'bob', 'cem'].map((who) => user.run(who, embedded)));
    expect(seen).toEqual(['ann', 'bob', 'cem']);
  });
});
