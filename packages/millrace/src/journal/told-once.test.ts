import { describe, expect, it } from '@jest/globals';
import { lastValueFrom } from 'rxjs';
import { createAgent, tool } from '../index.js';
import { phase } from '../seams/phase.js';
import { insertBefore, reasoning } from '../phases/index.js';
import { record, scriptedModel, text, toolCall } from '../testing/index.js';
import { recordsOf, runUntil } from './dying-driver.test-support.js';
import { type CallStoreDriver, createCallStore, inProcessCalls, journal } from './index.js';
import { journalIn } from './stored-calls.test-support.js';

describe('events of a call', () => {
  it('S7: are emitted once, wherever the process ended, and not again by a call that had ended', async () => {
    const look = tool({
      name: 'look',
      description: 'Looks.',
      run: () => 'Seen.',
      idempotent: true,
    });
    const made = (driver: CallStoreDriver) =>
      createAgent({
        model: scriptedModel(
          ...Array.from(
            { length: 4 },
            () =>
              ({ messages }: { messages: readonly unknown[] }) =>
                messages.length > 2 ? [text('Done.')] : [toolCall('look')],
          ),
        ),
        tools: [look],
        use: [
          insertBefore(reasoning, ({ hooks }) =>
            phase((run) => {
              hooks.report(run.iteration, { type: 'warning', message: `Turn ${run.iteration}.` });
              return run;
            }),
          ),
          journal(createCallStore(driver)),
        ],
      });
    const run$ = (driver: CallStoreDriver) => made(driver).call$('?', { callId: 'c' });
    const told = async (driver: CallStoreDriver) => {
      const events = await lastValueFrom(driver.read$('c', { kind: 'event' }));
      return events.map(({ name }) => name).filter((name) => name !== 'stepReplayed');
    };
    const whole = inProcessCalls();
    await lastValueFrom(run$(whole));
    const once = await told(whole);
    const outside = (names: readonly string[]) =>
      names.filter((name) => ['preCall', 'warning', 'postCall'].includes(name));
    for (let cut = 2; cut < (await recordsOf(run$)); cut += 1) {
      const store = inProcessCalls();
      runUntil(store, cut, run$);
      await record(journalIn(store).resumeStream$(made(store), 'c'));
      expect(outside(await told(store))).toEqual(outside(once));
      const before = await told(store);
      await journalIn(store).resume(made(store), 'c');
      expect(await told(store)).toEqual(before);
    }
  });
});
