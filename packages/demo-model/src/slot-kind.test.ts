import { expect, it } from '@jest/globals';
import { readSlots } from './read-slots.js';

it.each([
  ['expression', { type: 'string' }, 'expression'],
  ['x', { type: 'string', examples: ['1 + 2'] }, 'expression'],
  ['x', { type: 'string', description: 'An arithmetic expression' }, 'expression'],
  ['x', { type: 'string', examples: ['Europe/Berlin'] }, 'place'],
  ['timeZone', { type: 'string' }, 'place'],
  ['homeCity', { type: 'string' }, 'place'],
  ['x', { type: 'string', examples: ['a/b.ts', 'README.md'] }, 'path'],
  ['fileName', { type: 'string' }, 'path'],
  ['x', { type: 'string', format: 'uri' }, 'url'],
  ['x', { type: 'string', examples: ['a@b.example'] }, 'email'],
  ['x', { type: 'string', format: 'date' }, 'date'],
  ['x', { enum: ['a', 'b'] }, 'choice'],
  ['x', { type: 'integer' }, 'number'],
  ['x', { type: ['boolean', 'null'] }, 'flag'],
  ['query', { type: 'string', description: 'What to find in the files' }, 'query'],
  ['text', { type: 'string' }, 'prose'],
  ['x', { type: 'string', examples: ['ORD-1'] }, 'shaped'],
  ['x', { type: 'string', pattern: '^\\d+-\\d+$' }, 'shaped'],
  ['x', { type: 'string', format: 'uuid' }, 'shaped'],
  ['x', { type: 'string' }, 'name'],
  ['x', {}, 'name'],
  ['x', { type: 'object' }, 'opaque'],
  ['x', { type: 'array', items: { type: 'number' } }, 'number'],
  ['x', { anyOf: [{ type: 'null' }, { type: 'integer' }] }, 'number'],
  ['constructor', { type: 'string' }, 'name'],
])('%s: %j is filled by a(n) %s', (name, rules, expected) => {
  const [slot] = readSlots({ type: 'object', properties: { [name]: rules } });
  expect(slot?.kind).toBe(expected);
});
