import { describe, expect, it } from '@jest/globals';
import type { Deed, Said } from '../life/said.js';
import { deedsAfterInterrupt } from './deeds.js';

const did = (callId: string, deed: Deed): Said => ({ type: 'deed', callId, deed });

describe('deedsAfterInterrupt', () => {
  it('S6: finds what a call asks and runs after its interrupt was recorded', () => {
    const before = [did('c', 'asks'), did('c', 'runs'), did('c', 'isInterrupted')];
    const others = [did('d', 'asks'), did('c', 'isInterrupted')];
    expect(deedsAfterInterrupt([...before, ...others], 'c')).toEqual([]);
    expect(deedsAfterInterrupt([...before, ...others, did('c', 'runs')], 'c')).toEqual(['runs']);
    expect(deedsAfterInterrupt(others.slice(0, 1), 'd')).toEqual([]);
  });
});
