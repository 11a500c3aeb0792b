import { expect, it } from '@jest/globals';
import { calculator, clock, declare } from './declarations.test-data.js';
import { forceCall, insists } from './force-call.js';
import { readTools } from './read-tools.js';

it('prefers the tool that fits', () => {
  expect(forceCall('time in Rome', readTools([calculator, clock]))).toEqual({
    name: 'clock',
    input: { timeZone: 'Europe/Rome' },
  });
});

it('takes the first that can be filled otherwise, or none', () => {
  const count = declare('count', 'Counts.', { limit: { type: 'number' } });
  const note = declare('note', 'Notes.', { text: { type: 'string' } });
  expect(forceCall('hm', readTools([count, note]))).toEqual({
    name: 'note',
    input: { text: 'hm' },
  });
  expect(forceCall('hm', readTools([count]))).toBeUndefined();
});

it('insists knows who does', () => {
  expect(['required' as const, { name: 'x' }, 'auto' as const, undefined].map(insists)).toEqual([
    true,
    true,
    false,
    false,
  ]);
});
