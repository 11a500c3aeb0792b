import { describe, expect, it } from '@jest/globals';
import type { NewRecord } from 'millrace/journal';
import { asyncScheduler, firstValueFrom, NEVER, Subject, tap, VirtualTimeScheduler } from 'rxjs';
import { callStatements } from './call-statements.js';
import type { Sql } from './sql.js';
import { sqlCalls } from './sql-calls.js';

const record: NewRecord = { kind: 'step', name: 'a', seq: 0, text: '{}' };

describe('S6: a lease that is left while something is written', () => {
  it('is given back after it: connections of a pool overtake each other', async () => {
    const asked: string[] = [];
    let finish: (rows: readonly Record<string, unknown>[]) => void = () => undefined;
    const sql: Sql = {
      schema: 'millrace',
      hasVectors: false,
      notices$: NEVER,
      notify: () => undefined,
      transaction: (work) => work(sql.query),
      query: (text) => {
        const name = asked.length === 0 ? 'claim' : text.includes('insert') ? 'append' : 'release';
        asked.push(name);
        return name === 'append'
          ? new Promise((resolve) => (finish = resolve))
          : Promise.resolve([{ last_position: 0 }]);
      },
    };
    const driver = sqlCalls(
      { open: () => Promise.resolve(sql), close: () => Promise.resolve() },
      { leaseMs: 10_000, scheduler: asyncScheduler },
    );
    let written: Promise<unknown> | undefined;
    await firstValueFrom(
      driver.claim$('c').pipe(
        tap(({ append$ }) => {
          written = firstValueFrom(append$([record]), { defaultValue: undefined });
        }),
      ),
    );
    expect(asked).toEqual(['claim', 'append']);
    finish([{}]);
    await written;
    expect(asked).toEqual(['claim', 'append', 'release']);
  });

  it('is given back after a renewal, and this process claims the call again after that', async () => {
    const asked: string[] = [];
    let renewed: (rows: readonly Record<string, unknown>[]) => void = () => undefined;
    const names = new Map(
      Object.entries(callStatements('millrace')).map(([name, it]) => [it, name]),
    );
    const sql: Sql = {
      schema: 'millrace',
      hasVectors: false,
      notices$: NEVER,
      notify: () => undefined,
      transaction: (work) => work(sql.query),
      query: (statement) => {
        const name = names.get(statement) ?? '?';
        asked.push(name);
        return name === 'renew'
          ? new Promise((resolve) => (renewed = resolve))
          : Promise.resolve([{ last_position: 1 }]);
      },
    };
    const scheduler = new VirtualTimeScheduler(undefined, 100);
    const driver = sqlCalls(
      { open: () => Promise.resolve(sql), close: () => Promise.resolve() },
      { leaseMs: 300, scheduler },
    );
    const claimed = new Subject<void>();
    const begun = firstValueFrom(claimed);
    const holding = driver.claim$('c').subscribe(() => claimed.next());
    await begun;
    scheduler.flush();
    holding.unsubscribe();
    const again = firstValueFrom(driver.claim$('c'));
    await Promise.resolve();
    expect(asked).toEqual(['claim', 'renew']);
    renewed([{}]);
    await again;
    expect(asked.slice(0, 4)).toEqual(['claim', 'renew', 'release', 'claim']);
  });
});
