import { describe, expect, it } from '@jest/globals';
import { chunksOf, exchangeWith, finishEvent, respond, textEvent } from './wire.test-support.js';

describe('exchange$', () => {
  /** Milliseconds of the processor, which a busy machine hardly stretches; the least of three, as memory is tidied up in some. */
  const costOf = async (pieces: readonly (string | Uint8Array)[]): Promise<number> => {
    const costs: number[] = [];
    for (let run = 0; run < 3; run += 1) {
      const begun = process.cpuUsage();
      await chunksOf(exchangeWith(respond(pieces), { caps: { textLength: Infinity } }));
      const { user, system } = process.cpuUsage(begun);
      costs.push((user + system) / 1_000);
    }
    return Math.min(...costs);
  };
  /** For four times as much, what is quadratic would take sixteen times as long. */
  const expectLinear = async (costs: (size: number) => Promise<number>, size: number) => {
    await costs(size / 4);
    const [quarter, whole] = [await costs(size / 4), await costs(size)];
    expect(whole).toBeLessThan(quarter * 9 + 100);
  };

  it('X6: takes linear time for 100,000 events', async () => {
    const piece = textEvent('some words of text').repeat(500);
    await expectLinear((reads) => costOf([...Array<string>(reads).fill(piece), finishEvent]), 200);
  });

  it('X6: joins an event that comes in very many pieces in linear time', async () => {
    await expectLinear((length) => {
      const bytes = new TextEncoder().encode(textEvent('x'.repeat(length * 10)) + finishEvent);
      const reads = Math.ceil(bytes.length / 10);
      return costOf(Array.from({ length: reads }, (_, at) => bytes.slice(at * 10, at * 10 + 10)));
    }, 20_000);
  });
});
