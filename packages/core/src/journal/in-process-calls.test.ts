import { describe, expect, it } from '@jest/globals';
import { concatMap, lastValueFrom, Observable, toArray } from 'rxjs';
import { inProcessCalls } from './in-process-calls.js';

const step = (name: string) => ({ kind: 'step', name, seq: 0, text: '1' }) as const;

describe('inProcessCalls', () => {
  it('S6: gives back what was written down, to one writer at a time', async () => {
    const driver = inProcessCalls(() => 0);
    const held = driver
      .claim$('c')
      .pipe(concatMap((claim) => claim.append$([step('a'), step('b')])))
      .subscribe();
    await expect(lastValueFrom(driver.claim$('c'))).rejects.toMatchObject({ code: 'conflict' });
    held.unsubscribe();
    const read = await lastValueFrom(driver.read$('c').pipe(toArray()));
    expect(read.flat().map(({ name, position }) => [name, position])).toEqual([
      ['a', 1],
      ['b', 2],
    ]);
    expect(driver.claim$('c')).toBeInstanceOf(Observable);
  });
});
