import { describe, expect, it } from '@jest/globals';
import { lookUpForm, termsIn } from './words.js';

describe('termsIn', () => {
  it.each([
    ['call$ the agent!', ['call', 'the', 'agent']],
    ['createAgent', ['createAgent', 'create', 'Agent']],
    ['max_tokens', ['max_tokens', 'max', 'tokens']],
    ['Größe 42', ['Größe', '42']],
    ['東京の水車', ['東京', '京の', 'の水', '水車']],
    ['水 Tower東京', ['水', 'Tower', '東京']],
    ['안녕하세요 데이터', ['안녕', '녕하', '하세', '세요', '데이', '이터']],
    ['', []],
    ['_ __', []],
  ])('splits %s', (text, terms) => {
    expect(termsIn(text)).toEqual(terms);
  });
});

describe('lookUpForm', () => {
  it.each([
    ['Tools', 'tool'],
    ['policies', 'policy'],
    ['class', 'class'],
    ['status', 'status'],
    ['is', undefined],
    ['THE', undefined],
    ['gas', 'gas'],
    ['Stopping', 'stop'],
    ['tests', 'test'],
    ['testing', 'test'],
    ['settings', 'set'],
    ['calling', 'call'],
    ['string', 'string'],
    ['rings', 'ring'],
  ])('of %s is %s', (term, form) => {
    expect(lookUpForm(term)).toBe(form);
  });
});
