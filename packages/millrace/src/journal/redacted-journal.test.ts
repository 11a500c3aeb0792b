import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { lastValueFrom, map, toArray } from 'rxjs';
import { createAgent, tool } from '../index.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';
import { jsonSchema } from '../schema/index.js';
import { createCallStore } from './call-store.js';
import { inProcessCalls } from './in-process-calls.js';
import { journal } from './journal.js';

const secret = 'SECRET-HERON';
const redact = (value: string): string => value.replaceAll(secret, '[redacted]');

const asked = async (cuts: readonly number[], fails: boolean) => {
  const driver = inProcessCalls();
  const durable = journal(createCallStore(driver), { redact });
  const results: string[] = [];
  const look = tool({
    name: 'look',
    description: 'Looks.',
    input: jsonSchema({ type: 'object', properties: { at: { type: 'string' } } }),
    run: async function* ({ at }) {
      yield* partsOf(at ?? '', cuts);
      if (fails) throw new Error(`No ${secret} here.`);
      results.push(at ?? '');
      yield { [secret]: [at] };
    },
  });
  const answer = partsOf(`It is ${secret}.`, cuts).map((part) => text(part));
  const model = scriptedModel([toolCall('look', { at: secret })], answer);
  const agent = createAgent({ model, tools: [look], use: [durable] });
  const reply = await agent.call(`Where is ${secret}?`, { callId: 'a', metadata: { of: secret } });
  const stored = await lastValueFrom(
    driver.read$('a').pipe(
      toArray(),
      map((batches) => batches.flat().map((record) => record.text)),
    ),
  );
  return { reply, stored, model, results, durable, agent };
};

const partsOf = (value: string, cuts: readonly number[]): readonly string[] => {
  const at = [...new Set(cuts)].sort((a, b) => a - b).filter((cut) => cut < value.length);
  return [0, ...at].map((from, index) => value.slice(from, at[index])).filter((it) => it !== '');
};

describe('journal(store, { redact })', () => {
  it('X10: no record has what it removes, in any cut of the stream, and the call keeps it', async () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 15 }));
    await fc.assert(
      fc.asyncProperty(cuts, fc.boolean(), async (at, fails) => {
        const { reply, stored, model, results } = await asked(at, fails);

        for (const half of [secret, 'SECRET', 'HERON'])
          expect(stored.join('\n')).not.toContain(half);
        expect(reply.text).toContain(secret);
        expect(results).toEqual(fails ? [] : [secret]);
        expect(JSON.stringify(model.requests)).toContain(secret);
      }),
      { numRuns: 40 },
    );
  });

  it('S2: a resumed call continues with what is recorded', async () => {
    const { durable, agent } = await asked([], false);
    const reply = await durable.resume(agent, 'a');

    expect(reply.text).toBe('It is [redacted].');
  });

  it('checks the option', () => {
    const options = { redact: /x/ } as never;
    expect(() => journal(createCallStore(inProcessCalls()), options)).toThrow('redact');
  });
});
