import { describe, expect, it } from '@jest/globals';
import type { NewRecord } from '@millrace/core/journal';
import { asyncScheduler, firstValueFrom, NEVER, tap } from 'rxjs';
import type { Sql } from './sql.js';
import { sqlCalls } from './sql-calls.js';

const record: NewRecord = { kind: 'step', name: 'a', seq: 0, text: '{}' };

describe('S6: a lease that is left while something is appended', () => {
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
});
