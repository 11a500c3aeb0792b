import { lastValueFrom, toArray } from 'rxjs';
import { inProcessCalls } from './in-process-calls.js';

const step = (name: string) => ({ kind: 'step', name, seq: 0, text: '1' }) as const;

describe('inProcessCalls', () => {
  it('S6: gives back what was written down, to one writer at a time', async () => {
    const driver = inProcessCalls(() => 0);
    const claims: unknown[] = [];
    const held = driver.claim$('c').subscribe((claim) => {
      claims.push(claim);
      claim.append$([step('a'), step('b')]).subscribe();
    });
    expect(claims).toHaveLength(1);
    await expect(lastValueFrom(driver.claim$('c'))).rejects.toMatchObject({ code: 'conflict' });
    held.unsubscribe();
    const read = await lastValueFrom(driver.read$('c').pipe(toArray()));
    expect(read.flat().map(({ name, position }) => [name, position])).toEqual([
      ['a', 1],
      ['b', 2],
    ]);
  });
});
