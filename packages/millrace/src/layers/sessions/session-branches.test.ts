import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { lastValueFrom } from 'rxjs';
import { createAgent, suspend, textOf, tool } from '../../index.js';
import { unpaired } from '../../values/pairing.js';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from '../../testing/index.js';
import { withResults } from '../../memories/suspend.js';
import { inProcessMemory } from '../../memories/in-process-memory.js';
import { kept$ } from '../../values/memory.js';
import { pathTo } from '../../values/message-tree.js';
import { sessions } from './index.js';

const ask = tool({ name: 'ask', description: 'Asks.', run: () => suspend() });
const look = tool({ name: 'look', description: 'Looks.', run: () => 'seen' });

/** What the model answers to a question: the same to the same. */
const answers: Readonly<
  Record<string, readonly ReturnType<typeof text>[] | readonly ReturnType<typeof toolCall>[]>
> = {
  say: [text('Said.')],
  look: [toolCall('look')],
  ask: [toolCall('ask')],
};

const answer: ScriptedAnswer = ({ messages }) => {
  const last = messages.at(-1);
  const asked = last?.role === 'user' ? textOf(last).split(' ')[0] : 'say';
  return answers[asked ?? 'say'] ?? [text('Said.')];
};

/** One call: what it asks, and the message that it continues after, as a share of all that there are; none: the head. */
const step = fc.record({
  asks: fc.constantFrom('say', 'look', 'ask'),
  after: fc.option(fc.nat({ max: 999 }), { nil: undefined }),
  isReplacing: fc.boolean(),
  cancels: fc.boolean(),
});

describe('S12: a session, wherever its calls continue', () => {
  it('loses no message, asks with the path that it was given, and keeps each path valid', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const model = scriptedModel(...Array.from({ length: 99 }, () => answer));
        const memory = inProcessMemory();
        const session = sessions(createAgent({ model, tools: [ask, look] }), { memory }).open('s');
        const treeNow = () => lastValueFrom(kept$(session.memory));
        for (const [index, { asks, after, isReplacing, cancels }] of steps.entries()) {
          const before = await treeNow();
          // A branch begins after a question or the end of a call, never between a tool call and its result.
          const places = before.entries.filter(({ message }, at) => {
            const next = before.entries[at + 1];
            return message.role !== 'assistant' || next?.message.role !== 'tool';
          });
          const place =
            after === undefined
              ? undefined
              : (places[after % (places.length + 1)]?.message.id ?? null);
          const path = withResults(pathTo(before, place === undefined ? before.head : place));
          const replaced = isReplacing && before.head !== null ? { replaces: before.head } : {};
          if (cancels) await session.cancelSuspended();
          const read = model.requests.length;
          await session.call(`${asks} ${index}`, {
            callId: `c${index}`,
            ...(place !== undefined && { after: place }),
            ...replaced,
          });
          const now = await treeNow();
          expect(now.entries.slice(0, before.entries.length)).toEqual(before.entries);
          for (const { message } of now.entries) {
            const isOpen =
              message.role === 'assistant' &&
              message.content.some(({ type }) => type === 'tool_call');
            if (!isOpen) expect(unpaired(withResults(pathTo(now, message.id)))).toBeUndefined();
          }
          const seen = model.requests[read]?.messages ?? [];
          expect(seen.map(({ id }) => id)).toEqual([
            ...path.map(({ id }) => id),
            `c${index}/input/0`,
          ]);
          expect(JSON.stringify(seen)).not.toContain('Suspended');
          // The state has all of it.
          const other = sessions(createAgent({ model, tools: [ask, look] })).open(`other-${index}`);
          await other.loadState(JSON.parse(JSON.stringify(await session.saveState())));
          expect(await lastValueFrom(kept$(other.memory))).toEqual(now);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('runs calls of two branches at the same time, and lets one wait that continues after a running one', async () => {
    const model = scriptedModel([text('1')], [text('2')], [text('3')], [text('4')]);
    const session = sessions(createAgent({ model }), { onBusy: 'queue' }).open('s');
    await session.call('a', { callId: 'a' });
    const [b, c, d] = await Promise.all([
      session.call('b', { callId: 'b', after: 'a' }),
      session.call('c', { callId: 'c', after: null }),
      session.call('d', { callId: 'd', after: 'b' }),
    ]);
    expect([b, c, d].map(({ reason }) => reason)).toEqual(['answer', 'answer', 'answer']);
    const at = (id: string) => lastValueFrom(session.memory.load$({ at: id }));
    expect((await at('d')).filter(({ role }) => role === 'user').map(textOf)).toEqual([
      'a',
      'b',
      'd',
    ]);
    expect((await at('c')).filter(({ role }) => role === 'user').map(textOf)).toEqual(['c']);
  });
});
