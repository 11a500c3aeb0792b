import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createAgent, tool, toolResults } from 'millrace';
import {
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  journal,
  suspendBelow,
} from 'millrace/journal';
import { inProcessSessions, keepSessions } from 'millrace/sessions';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { concatMap, defer, delay, firstValueFrom, map, NEVER, of, race, ReplaySubject } from 'rxjs';
import { approveLater } from './index.js';

/** One store, and processes that answer the same session. Each write of a process ends it, if it is its last one. */
const place = () => {
  const [driver, states] = [inProcessCalls(), inProcessSessions()];
  const paid: string[] = [];
  const processOf = (name: string, writes = Infinity) => {
    const died$ = new ReplaySubject<void>(1);
    let left = writes;
    const alive$ = defer(() => {
      left -= 1;
      if (left >= 0) return of(0);
      died$.next();
      return NEVER;
    });
    const dying: CallStoreDriver = {
      ...driver,
      claim$: (callId) =>
        driver.claim$(callId).pipe(
          map((claim) => ({
            append$: (batch) => alive$.pipe(concatMap(() => claim.append$(batch))),
          })),
        ),
    };
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      run: () => of(`Paid ${paid.push(name)}.`).pipe(delay(0)),
    });
    const model = scriptedModel(
      ...Array.from(
        { length: 4 },
        () =>
          ({ messages }: { readonly messages: readonly { readonly role: string }[] }) =>
            messages.at(-1)?.role === 'tool' ? [text('Done.')] : [toolCall('pay')],
      ),
    );
    const agent = createAgent({
      name: 'a',
      model,
      tools: [approveLater(pay)],
      use: [suspendBelow],
    });
    const kept = keepSessions(agent, states, { journal: journal(createCallStore(dying)) });
    return { open: () => kept.open('s'), died$ };
  };
  return { paid, processOf };
};

const outcome = (call: Promise<{ readonly reason: string }>): Promise<string> =>
  call.then(
    ({ reason }) => reason,
    (error: { readonly code: string }) => error.code,
  );

describe('S6: decisions of two processes', () => {
  it.each([
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ])('%s and %s at the same time: one counts, the other has no effect', async (one, other) => {
    const { paid, processOf } = place();
    const [a, b] = [await processOf('a').open(), await processOf('b').open()];
    const { suspensions = [] } = await a.call('Pay.');
    await b.close().catch(() => undefined);
    const second = await processOf('b').open();
    const id = suspensions[0]?.toolCall.id ?? '';
    const ended = await Promise.all([
      outcome(a.call(toolResults({ [id]: one }))),
      outcome(second.call(toolResults({ [id]: other }))),
    ]);
    expect([...ended].sort()).toEqual(['answer', 'conflict']);
    const counts = ended[0] === 'answer' ? one : other;
    expect(paid).toHaveLength(counts ? 1 : 0);
    const third = await processOf('c').open();
    expect(await outcome(third.call(toolResults({ [id]: true })))).toBe('invalidResume');
    expect(JSON.stringify(await third.saveState())).toContain(counts ? 'Paid 1.' : 'not approved');
    await third.resume();
    expect(paid).toHaveLength(counts ? 1 : 0);
  });

  it('pays at most once wherever the first process dies, and with any answer of the next', () =>
    fc.assert(
      fc.asyncProperty(
        fc.nat({ max: 16 }),
        fc.boolean(),
        fc.boolean(),
        fc.boolean(),
        async (writes, one, other, resumesFirst) => {
          const { paid, processOf } = place();
          const { suspensions = [] } = await (await processOf('first').open()).call('Pay.');
          const id = suspensions[0]?.toolCall.id ?? '';
          const dying = processOf('a', writes);
          const call$ = (await dying.open()).call$(toolResults({ [id]: one }));
          await firstValueFrom(race(dying.died$, call$));
          const live = await processOf('b').open();
          if (resumesFirst) await live.resume().catch(() => undefined);
          await outcome(live.call(toolResults({ [id]: other })));
          const last = await processOf('c').open();
          await last.resume().catch(() => undefined);
          expect(paid.length).toBeLessThanOrEqual(1);
          if (!one && !other) expect(paid).toEqual([]);
        },
      ),
      { numRuns: 100 },
    ));
});
