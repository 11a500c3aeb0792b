import { describe, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { createCallStore, inProcessCalls, journal, type CallStoreDriver } from 'millrace/journal';
import { sessions } from 'millrace/sessions';
import { scriptedModel, text } from 'millrace/testing';
import { lastValueFrom, mergeMap, tap } from 'rxjs';
import { findRun$ } from './find-run.js';

/** A store of so many runs that lists one in each batch, and counts them. */
const setUp = async (...ids: readonly string[]) => {
  const inner = inProcessCalls();
  let listed = 0;
  const driver: CallStoreDriver = {
    ...inner,
    list$: (query) =>
      inner.list$(query).pipe(
        mergeMap((calls) => calls.map((call) => [call])),
        tap(() => (listed += 1)),
      ),
  };
  const store = createCallStore(driver);
  const agent = createAgent({
    model: scriptedModel(...ids.concat('1', '2', '3').map(() => [text('Done.')])),
  });
  for (const callId of ids) await agent.with(journal(store)).call('?', { callId });
  const place = { type: 'files', directory: '/runs' } as const;
  const find = (wanted: string) => lastValueFrom(findRun$({ store, place }, wanted));
  const chat = (callId: string, session: string) =>
    sessions(agent.with(journal(store)))
      .open(session)
      .call('?', { callId });
  return { find, chat, listed: () => listed };
};

describe('findRun$', () => {
  it('S7: reads no older runs than the one with the whole id, even if the ids of others start with it', async () => {
    const { find, listed } = await setUp('a', 'b', 'c', 'cd', 'e');
    expect((await find('c')).callId).toBe('c');
    expect(listed()).toBeLessThan(5);
  });

  it('S7: reads all for the beginning of an id, which may be of several', async () => {
    const { find } = await setUp('ab1', 'ac', 'ab2');
    expect((await find('ac')).callId).toBe('ac');
    await expect(find('ab')).rejects.toThrow("The ids of 2 runs start with 'ab'");
    await expect(find('x')).rejects.toThrow("There is no run 'x'");
  });

  it('names the store for the list of runs, and the last run of a session', async () => {
    const { find, chat } = await setUp('a1');
    await chat('b2', 'trip');
    await chat('c3', 'trip');
    await expect(find('x')).rejects.toThrow(
      '"npx @millrace/cli runs --store /runs" lists the runs.',
    );
    await expect(find('tri')).rejects.toThrow(/It is a session: its last run is c3\./u);
    await chat('d4', 'trip-2');
    await expect(find('trip')).rejects.toThrow(/It is a session: its last run is c3\./u);
    await expect(find('tri')).rejects.not.toThrow(/It is a session/u);
  });
});
