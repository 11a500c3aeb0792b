import { expect, it } from '@jest/globals';
import { clock, declare, fourTools, otherTools } from './declarations.test-data.js';
import { asksForNow, givesTime, isClock } from './present-time.js';
import { readTools } from './read-tools.js';

it('isClock knows tools that only tell the time', () => {
  const clocks = (tools: typeof fourTools) =>
    readTools(tools)
      .tools.filter(isClock)
      .map(({ name }) => name);
  expect(clocks(fourTools)).toEqual(['clock']);
  expect(clocks(otherTools)).toEqual(['getCurrentTime']);
  const weather = declare('weather', 'Tells the weather.', { city: { type: 'string' } });
  const convert = declare('convert_time', 'Converts a time.', { time: { type: 'string' } });
  expect(clocks([weather, convert, clock])).toEqual(['clock']);
});

it.each([
  ['what time is it in Rome', true, false],
  ['Tokyo time', true, false],
  ["what's the date in Sydney", true, false],
  ['how late is it in Berlin', true, false],
  ['how many days until Christmas', false, false],
  ['what time does the train to Berlin leave', false, false],
  ['how many days are in february', false, false],
  ['what time will it be in 3 hours', true, true],
  ["if it's 3pm in Berlin", false, true],
  ['what day was it 2 weeks ago', true, true],
  ['at 15:30', false, true],
])('%j asks for now: %s, gives a time: %s', (text, now, given) => {
  expect([asksForNow(text), givesTime(text)]).toEqual([now, given]);
});
