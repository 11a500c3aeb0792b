import { expect, it } from '@jest/globals';
import { calculator, clock, declare, readFile, search } from './declarations.test-data.js';
import { readTools } from './read-tools.js';
import { stemOf } from './words.js';

it('knows which tools find passages', () => {
  const isRetrieval = (tool: typeof search) => readTools([tool]).tools[0]?.isRetrieval;
  expect([search, calculator, clock, readFile].map(isRetrieval)).toEqual([
    true,
    false,
    false,
    false,
  ]);
  const remember = declare('remember', 'Keeps a text.', { text: { type: 'string' } });
  expect(isRetrieval(remember)).toBe(false);
});

it('knows which tools change something', () => {
  const isChanging = (name: string, description: string) =>
    readTools([declare(name, description, {})]).tools[0]?.isChanging;
  expect(isChanging('deleteFile', 'Takes a file away.')).toBe(true);
  expect(isChanging('mail', 'Sends an email.')).toBe(true);
  expect(isChanging('order_status', 'Tells where an order is.')).toBe(false);
});

it('weighs a word by what it says of the tool', () => {
  const [reading] = readTools([readFile]).tools;
  expect(reading?.vocabulary.get(stemOf('path'))).toBe(1);
  expect(reading?.vocabulary.get(stemOf('directory'))).toBeLessThan(1);
  expect(reading?.vocabulary.has(stemOf('weather'))).toBe(false);
});

it('finds the rarest word the most distinctive', () => {
  const { rarity } = readTools([clock, readFile, declare('write_file', 'Writes a file.', {})]);
  expect(rarity('unheardof')).toBeGreaterThan(rarity(stemOf('clock')));
  expect(rarity(stemOf('clock'))).toBeGreaterThan(rarity(stemOf('file')));
});
