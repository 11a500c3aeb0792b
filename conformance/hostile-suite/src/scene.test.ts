import { describe, expect, it } from '@jest/globals';
import { type Attack, scene } from './scene.js';
import { tableOf } from './table.js';

const play = (attacks: Readonly<Record<string, Attack<string>>>) =>
  scene({ rule: 'X1', promise: 'It holds', open: () => 'world', attacks }).play();

const pollute: Attack<string> = () => {
  Object.assign(Object.getPrototypeOf({}), { polluted: 1 });
  return Promise.resolve(undefined);
};

describe('a scene', () => {
  it('reports what an attacker got, and takes nothing for held that was not played', async () => {
    const rows = await play({
      holds: () => Promise.resolve(undefined),
      breaks: (world) => Promise.resolve(`it got the ${world}`),
      throws: () => Promise.reject(new Error('no server')),
      pollutes: pollute,
    });
    expect(rows.map(({ attack, broke }) => [attack, broke?.split('\n')[0]])).toEqual([
      ['holds', undefined],
      ['breaks', 'it got the world'],
      ['throws', 'the attack failed: Error: no server'],
      ['pollutes', 'Object.prototype got polluted'],
    ]);
    expect(Reflect.has({}, 'polluted')).toBe(false);
  });

  it('closes its world after an attack that throws', async () => {
    const closed: string[] = [];
    await scene({
      rule: 'X1',
      promise: 'It holds',
      open: () => 'world',
      close: (world) => closed.push(world),
      attacks: { throws: () => Promise.reject(new Error('no')) },
    }).play();
    expect(closed).toEqual(['world']);
  });
});

describe('the table', () => {
  it('has a row for each attack, the total, and what attackers got', () => {
    const promise = 'It holds';
    expect(
      tableOf([
        { promise, attack: 'one \u202e', broke: undefined },
        { promise, attack: 'two', broke: 'the key' },
      ]).split('\n'),
    ).toEqual([
      'promise   attack',
      'It holds  one ?   held',
      'It holds  two     BROKE',
      '',
      '1 of 2 attacks held.',
      'BROKE: It holds: two: the key',
    ]);
  });
});
