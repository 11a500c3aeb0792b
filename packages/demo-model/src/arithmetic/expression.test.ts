import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isExpression, readExpressions } from './expression.js';

const options = { units: true, percent: true };
const read = (text: string, given = {}): readonly string[] =>
  readExpressions(text, { ...options, ...given }).map((it) => it.text);

describe('readExpressions', () => {
  it.each([
    ['17.5% of 2,349', '17.5% * 2349'],
    ['(3+4)*2^5', '(3 + 4) * 2^5'],
    ['10 - (4 - 3)', '10 - (4 - 3)'],
    ['2^-1', '2^(-1)'],
    ['-3 + 5', '-3 + 5'],
    ['2(3+4)', '2 * (3 + 4)'],
    ['3 x 4', '3 * 4'],
    ['5!', '5!'],
    ['10 mod 3', '10 mod 3'],
    ['max(1, 2, 3)', 'max(1, 2, 3)'],
    ['log10(100) + sqrt(16)', 'log10(100) + sqrt(16)'],
    ['two plus three times four', '2 + 3 * 4'],
    ['seventeen divided by four', '17 / 4'],
    ['one and a half times 3', '1.5 * 3'],
    ['half a dozen', '0.5 * 12'],
    ['a third of 90', '1 / 3 * 90'],
    ['three dozen', '3 * 12'],
    ['the square root of two times pi', 'sqrt(2) * pi'],
    ['cube root of 27', 'cbrt(27)'],
    ['twice 7', '2 * 7'],
    ['5 squared', '5^2'],
    ['3 to the 4th power', '3^4'],
    ['the sum of 3, 4 and 5', '3 + 4 + 5'],
    ['product of 3 + 1 and 4', '(3 + 1) * 4'],
    ['average of 3, 5 and 9', '(3 + 5 + 9) / 3'],
    ['difference between 10 and 4', '10 - 4'],
    ['divide 100 by 7', '100 / 7'],
    ['subtract 5 from 20', '20 - 5'],
    ['add 3 to 4', '4 + 3'],
    ['add 3, 4 and 5', '3 + 4 + 5'],
    ['double 4', '2 * 4'],
    ['halve 9', '9 / 2'],
    ['increase 200 by 15%', '200 * (100 + 15) / 100'],
    ['200 minus 15 percent', '200 * (100 - 15) / 100'],
    ['20% off 80', '80 * (100 - 20) / 100'],
    ['15% tip on 42.50', '15% * 42.50'],
    ['what percent of 80 is 20', '20 / 80 * 100'],
    ['20 as a percentage of 80', '20 / 80 * 100'],
    ['5 miles to km', '5 miles to km'],
    ['how many seconds are there in 3 days', '3 days to seconds'],
    ['5 miles is how many kilometres', '5 miles to kilometers'],
    ['how many feet in a mile', '1 mile to feet'],
    ['6 feet 2 inches in cm', '(6 feet + 2 inches) to cm'],
    ['12 in to cm', '12 inches to cm'],
    ['60 mph in km/h', '60 mi/h to km/h'],
    ['10 m² to square feet', '10 m^2 to feet^2'],
    ['100 °F in celsius', '100 degF to degC'],
    ['is 7 * 8 more than 50', '7 * 8 > 50'],
    ['2 + 2 = 5', '2 + 2 == 5'],
    ['2+2=', '2 + 2'],
    ['the remainder of 17 divided by 5', '17 mod 5'],
    ['3/4 of 100', '3 / 4 * 100'],
    ['10 percent more than 50', '50 * (100 + 10) / 100'],
    ['10! / 8!', '10! / 8!'],
    ['(2+3)*4)', '(2 + 3) * 4'],
  ])('%s', (text, expected) => {
    expect(read(text)).toEqual([expected]);
  });

  it.each([
    'what time is it in Tokyo',
    'x + 2 * 3',
    '2 * * 3',
    '2 thousand and 5 plus 1',
    '1, 2, 3',
    '(2+3)*(4-1',
    '2 + 3,5',
    '3,5 + 2',
    '42',
    '5 miles',
    'version 1.2.3',
    'add a tool',
    'over and over again',
  ])('finds none in: %s', (text) => {
    expect(read(text)).toEqual([]);
  });

  it('finds several', () => {
    expect(read('2+2 and then 3*3')).toEqual(['2 + 2', '3 * 3']);
  });

  it('writes what the tool can read', () => {
    expect(read('5% of 80', { percent: false })).toEqual(['5 / 100 * 80']);
    expect(read('5 miles to km', { units: false })).toEqual([]);
  });

  it('puts a result in the place of a reference, if it is a quantity', () => {
    expect(read('multiply it by 3', { reference: '14' })).toEqual(['14 * 3']);
    expect(read('add 3', { reference: '-2.5' })).toEqual(['-2.5 + 3']);
    expect(read('that squared', { reference: '-2' })).toEqual(['(-2)^2']);
    expect(read('times two', { reference: '7' })).toEqual(['7 * 2']);
    expect(read('convert it to km', { reference: '5 miles' })).toEqual(['5 miles to km']);
    const [waiting] = readExpressions('divide it by 3', { reference: 'Paris' });
    expect(waiting?.waits).toBe(true);
  });

  it('takes no piece of what is too long', () => {
    expect(read('1 + '.repeat(600) + '1')).toEqual([]);
    expect(read('('.repeat(5_000))).toEqual([]);
    expect(read('sqrt('.repeat(5_000))).toEqual([]);
  });

  it('says which words it has read', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (before, after) => {
        const text = `${before} divide 6 by 3 ${after}`;
        const spans = readExpressions(text, options);
        return spans.every(({ start, end }) => start < end && end <= text.length);
      }),
    );
  });
});

it.each([
  ['2 + 3 * 4', true],
  ['5 miles to km', true],
  ['Europe/Berlin', false],
  ['README.md', false],
  ['2 + 2 apples', false],
])('isExpression(%j) is %s', (text, expected) => {
  expect(isExpression(text)).toBe(expected);
});
