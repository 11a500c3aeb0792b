import { describe, expect, it } from '@jest/globals';
import { type AgentEvent, createDemand } from 'millrace';
import fc from 'fast-check';
import { createTail } from './tail.js';

const eventAt = (seq: number, type = 'preReasoning', messageId?: string): AgentEvent =>
  ({ seq, type, ...(messageId !== undefined && { messageId, delta: 'x' }) }) as never;

const followed = (tail: ReturnType<typeof createTail>, after = 0) => {
  const seqs: number[] = [];
  const state = { seqs, isOver: false };
  tail.follow$(after).subscribe({
    next: ({ seq }) => seqs.push(seq),
    complete: () => {
      state.isOver = true;
    },
  });
  return state;
};

describe('the tail of a call', () => {
  it('shows an event once it is durable', () => {
    const tail = createTail();
    const { seqs } = followed(tail);
    tail.push(eventAt(1));
    tail.push(eventAt(2));
    expect(seqs).toEqual([]);
    tail.written(1);
    expect(seqs).toEqual([1]);
    tail.written(4);
    expect(seqs).toEqual([1, 2]);
    // A store may have written it before it is delivered.
    tail.push(eventAt(4));
    expect(seqs).toEqual([1, 2, 4]);
  });

  it('shows up to 64 further deltas of a message that the store knows', () => {
    const tail = createTail();
    const { seqs } = followed(tail);
    tail.push(eventAt(1, 'reasoningChunk', 'a'));
    expect(seqs).toEqual([]);
    tail.written(1);
    for (let seq = 2; seq < 100; seq += 1) tail.push(eventAt(seq, 'reasoningChunk', 'a'));
    expect(seqs.at(-1)).toBe(65);
    tail.written(80);
    expect(seqs.at(-1)).toBe(99);
    tail.push(eventAt(100, 'postReasoning'));
    tail.push(eventAt(101, 'reasoningChunk', 'b'));
    expect(seqs.at(-1)).toBe(99);
    tail.written(100);
    expect(seqs.at(-1)).toBe(100);
    tail.written(101);
    expect(seqs.at(-1)).toBe(101);
  });

  it('completes at the end, without what has not become durable', () => {
    const tail = createTail();
    const reader = followed(tail);
    tail.push(eventAt(1));
    tail.written(1);
    tail.push(eventAt(2));
    expect(reader).toEqual({ seqs: [1], isOver: false });
    tail.end();
    expect(reader).toEqual({ seqs: [1], isOver: true });
    expect(followed(tail, 1)).toEqual({ seqs: [], isOver: true });
  });

  it('pauses while the demand is closed', () => {
    const tail = createTail();
    const demand = createDemand(2);
    const seqs: number[] = [];
    tail.follow$(0, demand).subscribe(({ seq }) => {
      seqs.push(seq);
      demand.backlog(seqs.length);
    });
    for (let seq = 1; seq < 6; seq += 1) tail.push(eventAt(seq));
    tail.written(5);
    expect(seqs).toEqual([1, 2]);
    demand.backlog(0);
    expect(seqs).toEqual([1, 2, 3]);
    demand.release();
    expect(seqs).toEqual([1, 2, 3, 4, 5]);
  });

  it('sends a slow reader to the store, and keeps a limited number of events', () => {
    const tail = createTail();
    const demand = createDemand(1);
    const seqs: number[] = [];
    let isOver = false;
    tail.follow$(0, demand).subscribe({
      next: ({ seq }) => {
        seqs.push(seq);
        demand.backlog(1);
      },
      complete: () => {
        isOver = true;
      },
    });
    for (let seq = 1; seq < 10_000; seq += 1) {
      tail.push(eventAt(seq));
      tail.written(seq);
    }
    expect([seqs, isOver, tail.has(1)]).toEqual([[1], true, false]);
    expect(tail.has(9_990)).toBe(true);
    expect(followed(tail, 9_997).seqs).toEqual([9_998, 9_999]);
  });

  it('does not have what came before the call was resumed', () => {
    const tail = createTail();
    expect(tail.has(0)).toBe(true);
    tail.push(eventAt(100));
    expect([tail.has(0), tail.has(99)]).toEqual([false, true]);
  });

  it('gives each reader each durable event once and in order, whenever it comes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('push', 'write', 'read', 'end'), { maxLength: 3_000 }),
        (actions) => {
          const tail = createTail();
          const readers: { readonly seqs: number[]; readonly after: number; isOver: boolean }[] =
            [];
          let seq = 0;
          for (const action of actions) {
            if (action === 'push') tail.push(eventAt((seq += 1)));
            if (action === 'write') tail.written(seq);
            if (action === 'end') break;
            const after = Math.max(0, seq - 3);
            if (action === 'read' && tail.has(after))
              readers.push({ ...followed(tail, after), after });
          }
          tail.written(seq);
          tail.end();
          for (const { seqs, after } of readers) {
            expect(seqs).toEqual(seqs.map((_, index) => after + 1 + index));
            expect(seqs.at(-1) ?? seq).toBe(seq);
          }
        },
      ),
    );
  });
});
