import { describe, expect, it } from '@jest/globals';
import { calculator, clock, readFile } from './declarations.test-data.js';
import { describeResult, focusOnResult } from './describe-result.js';
import { readTools } from './read-tools.js';

const [calculating, telling, reading] = readTools([calculator, clock, readFile]).tools;

const seen = (name: string, text: string, isError = false) => ({ name, input: {}, text, isError });

describe('describeResult', () => {
  const sum = { expression: '2 + 2' };
  it.each([
    ['4', '2 + 2 = 4.'],
    ['2 + 2 = 4', '2 + 2 = 4.'],
    ['{"value": 4}', '2 + 2 = 4.'],
    ['true', 'Yes: 2 + 2.'],
    ['false', 'No: 2 + 2 is false.'],
    ['', 'The calculator gave no text for “two and two”.'],
  ])('writes %j of arithmetic', (text, expected) => {
    expect(describeResult(calculating, sum, seen('calculator', text), 'two and two')).toBe(
      expected,
    );
  });

  it('writes short results with what they are about', () => {
    const rome = { timeZone: 'Europe/Rome' };
    const write = (text: string) =>
      describeResult(telling, rome, seen('clock', text), 'time in Rome');
    expect(write('12:00')).toBe('Europe/Rome: 12:00.');
    expect(write('12:00 in Rome')).toBe('12:00 in Rome.');
    expect(write('It is noon on Friday.')).toBe('It is noon on Friday.');
    expect(describeResult(telling, {}, seen('clock', '12:00'), 'time')).toBe('clock: 12:00.');
  });

  it('writes what is asked of a long result', () => {
    const file = '# A\n\nversion: 3\n';
    const write = (part: string) =>
      describeResult(reading, { path: 'a.md' }, seen('read_file', file), part);
    expect(write('what version is in a.md')).toBe('a.md:\nversion: 3');
    expect(write('show me a.md')).toBe('a.md:\n# A\n\nversion: 3');
  });

  it('says what it cannot take from a long result', () => {
    const file = '# A\n\nversion: 3\n';
    const write = (part: string) =>
      describeResult(reading, { path: 'a.md' }, seen('read_file', file), part).split('\n')[0];
    expect(write('how many lines does a.md have')).toBe(
      'This is a.md. I cannot count or measure in it:',
    );
    expect(write('is there a file called a.md?')).toBe('Yes, a.md:');
    expect(write('does a.md exist')).toBe('Yes, a.md:');
    expect(write('who wrote a.md?')).toContain('I find no words of “who wrote a.md” in it');
  });

  it('tells errors, of unknown tools too', () => {
    expect(describeResult(undefined, {}, seen('some_tool', 'It broke', true), 'do it')).toBe(
      'The tool some_tool could not answer “do it”: It broke.',
    );
  });
});

it('focusOnResult says so where the result says nothing', () => {
  expect(focusOnResult('its title', seen('x', 'title: A\nelse'))).toBe('On “its title”:\ntitle: A');
  expect(focusOnResult('its size', seen('x', 'title: A'))).toBe(
    'The result does not seem to say “its size”.',
  );
  expect(focusOnResult('tell me the size', seen('x', 'title: A'))).toBe(
    'The result does not seem to say “the size”.',
  );
  expect(focusOnResult('it', seen('x', 'title: A'))).toBe('I have no tool for “it”.');
});
