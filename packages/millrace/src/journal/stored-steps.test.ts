import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, map } from 'rxjs';
import { fork$, steps$ } from './index.js';
import { all, begun, step, storeWith } from './stored-calls.test-support.js';

describe('the steps of a call', () => {
  it('S7: of each call that a tool makes are a part of its use', async () => {
    const uses = ['a', 'b/1', '1'];
    const places = ['a', 'a+2', 'a+approval', 'a+approval+3', 'a+1.2', 'a+1.2+2', 'a+1.1+2.1'];
    const names = [
      ...places.map((place) => ({ place, tool: '1/0' })),
      ...['use+b%2f1', 'use+b%2f1+2'].map((place) => ({ place, tool: '1/1' })),
      ...['use+1', 'use+1+1', 'use+1+1.1'].map((place) => ({ place, tool: '1/2' })),
    ];
    const intents = uses.map((id, at) =>
      step(`c/1/${at}/intent`, { toolCall: { type: 'tool_call', id } }),
    );
    const below = names.map(({ place }) => step(`c/${place}/open`, {}));
    const store = await storeWith({
      c: [begun('c'), step('c/1', {}), ...intents, ...below.reverse(), step('c/2', {})],
    });
    const steps = await all(steps$(store, 'c'));
    expect(steps.filter(({ id }) => id.includes('+')).every((it) => it.iteration === 1)).toBe(true);
    for (const { place, tool: used } of names) {
      const at = (name: string) => steps.findIndex(({ id }) => id === name);
      const next = at(`1/${Number(used.slice(2)) + 1}/intent`);
      const placed = at(`${place}/open`);
      expect([placed > at(`${used}/intent`), next === -1 || placed < next]).toEqual([true, true]);
    }
    const id = await firstValueFrom(fork$(store, 'c', { at: 'a+2/open' }));
    expect(await all(steps$(store, id).pipe(map((it) => it.id)))).not.toContain('1/0/intent');
  });
});
