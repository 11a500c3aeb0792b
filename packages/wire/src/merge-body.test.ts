import { describe, expect, it } from '@jest/globals';
import { mergeBody } from './merge-body.js';
import { rawJson, rawJsonList } from './raw-json.js';

describe('further fields of a request', () => {
  it.each<[string, object, object, object]>([
    ['a new field', { a: 1 }, { b: 2 }, { a: 1, b: 2 }],
    ['a value', { temperature: 1 }, { temperature: 0 }, { temperature: 0 }],
    ['null', { reasoning: { effort: 'low' } }, { reasoning: null }, { reasoning: null }],
    [
      'an object',
      { stream_options: { include_usage: true } },
      { stream_options: { include_obfuscation: false } },
      { stream_options: { include_usage: true, include_obfuscation: false } },
    ],
    [
      'a field within',
      { text: { format: { a: 1 } } },
      { text: { format: { b: 2 } } },
      { text: { format: { b: 2 } } },
    ],
    [
      'an object that is written',
      { text: rawJson('{"a":1}') },
      { text: { b: 2 } },
      { text: { a: 1, b: 2 } },
    ],
    ['a list', { include: ['a', 'b'] }, { include: ['b', 'c'] }, { include: ['a', 'b', 'c'] }],
    [
      'a list that is written',
      { tools: rawJsonList(['{"n":1}']) },
      { tools: [{ n: 2 }] },
      { tools: [{ n: 1 }, { n: 2 }] },
    ],
    [
      'another type',
      { format: { type: 'a', x: 1 } },
      { format: { type: 'b' } },
      { format: { type: 'b' } },
    ],
    ['the conversation', { input: rawJsonList(['{}']) }, { input: [1] }, { input: [1] }],
    ['a list instead of an object', { stop: { a: 1 } }, { stop: ['x'] }, { stop: ['x'] }],
  ])('are merged one level deep: %s', (_, fields, body, merged) => {
    expect(mergeBody({ ...fields }, undefined, { ...body })).toEqual(merged);
  });
});
