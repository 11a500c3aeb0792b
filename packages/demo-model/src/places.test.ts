import { describe, expect, it } from '@jest/globals';
import { placesIn } from './places.js';

const placesOf = (text: string): readonly string[] =>
  placesIn(text).map((place) => `${place.text} ${place.zone ?? '?'}`);

describe('placesIn', () => {
  it.each([
    ['what time is it in new york', ['new york America/New_York']],
    ['Tokyo and London', ['Tokyo Asia/Tokyo', 'London Europe/London']],
    ['time in Tokyo, Japan', ['Tokyo Asia/Tokyo']],
    ['time in paris, texas', ['paris, texas America/Chicago']],
    ['Is it late in Europe/Berlin?', ['Europe/Berlin Europe/Berlin']],
    ['the weather in Springfield Falls today', ['Springfield Falls ?']],
    ['time in foobarville please', ['foobarville ?']],
    ['Paris', ['Paris Europe/Paris']],
    ['Atlantis', ['Atlantis ?']],
    ['What is the time', []],
    ['See you on Monday', []],
    ['the town center', []],
    ['at UTC+2', ['UTC+2 Etc/GMT-2']],
    ['in constructor', ['constructor ?']],
  ])('%s', (text, expected) => {
    expect(placesOf(text)).toEqual(expected);
  });
});
