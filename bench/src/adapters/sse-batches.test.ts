import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { chatWire } from '../mock/chat-wire.js';
import { messagesWire } from '../mock/messages-wire.js';
import { sseBatches } from './sse-batches.js';

const bytes = new TextEncoder().encode(
  Buffer.concat([...chatWire.answerFrames(0, 4), ...messagesWire.answerFrames(0, 4)])
    .toString()
    .replaceAll('quick', 'schön €'),
);

const eventsIn = async (pieces: readonly Uint8Array[]): Promise<readonly unknown[]> => {
  const events: unknown[] = [];
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
  for await (const batch of sseBatches<unknown>(body)) events.push(...batch);
  return events;
};

it('X5: reads the same events wherever the bytes are cut', async () => {
  const whole = await eventsIn([bytes]);
  expect(whole.length).toBeGreaterThan(15);
  expect(JSON.stringify(whole)).toContain('schön €');
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length)), async (cuts) => {
      const ends = [...cuts.toSorted((a, b) => a - b), bytes.length];
      const pieces = ends.map((end, index) => bytes.slice(ends[index - 1] ?? 0, end));
      expect(await eventsIn(pieces)).toEqual(whole);
    }),
  );
});
