import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { runTool } from '../run-tool.test-support.js';
import { calculator } from './calculator.js';

const tool = calculator();
const calculate = async (expression: string): Promise<string> =>
  (await runTool(tool, { expression })).text;

describe('calculator', () => {
  it.each([
    ['0.1 + 0.2', '0.3'],
    ['1/3', '0.33333333333333'],
    ['10/4', '2.5'],
    ['2^64', '18446744073709551616'],
    ['123456789 * 987654321', '121932631112635269'],
    ['12345678901234567.25 + 0.01', '12345678901234567.26'],
    ['sqrt(2)^2', '2'],
    ['sqrt(2) * pi', '4.4428829381584'],
    ['30!', '265252859812191058636308480000000'],
    ['50!', '3.0414093201713e+64'],
    ['-2^2', '-4'],
    ['(19.99 + 5) * 3', '74.97'],
    ['1e-9', '1e-9'],
    ['mod(7, 3)', '1'],
    ['10 % 3', '1'],
    ['mod(12345678901234567890123456789, 97)', '44'],
    ['round(2/3, 2)', '0.67'],
    ['ln(e)', '1'],
    ['log(8, 2)', '3'],
    ['SQRT(16)', '4'],
    ['sin(30 deg)', '0.5'],
    ['mean(1, 2, 3, 4)', '2.5'],
    ['max(2, 349)', '349'],
    ['3/7 > 0.42', 'true'],
    ['5 km < 3 miles', 'false'],
    ['123456789123456789 + 1', '123456789123456790'],
    ['99999999999999999999 * 3', '299999999999999999997'],
    ['10^39 + 1', '1000000000000000000000000000000000000001'],
    ['(2^300 + 1) - 2^300', '1'],
    ['sum(2^300, 1, -2^300)', '1'],
    ['12345678901234567890 / 7', '1763668414462081127.14'],
    ['mean(12345678901234567890, 12345678901234567891)', '12345678901234567890.5'],
    ['exp(50)', '5184705528587072464087.45'],
    ['1/3 * 3 - 1', '0'],
    ['pi * 1e-80', '3.1415926535898e-80'],
    ['123456789123456789 == 123456789123456788', 'false'],
    ['10^20 + 1 > 10^20', 'true'],
    ['sqrt(2)^2 == 2', 'true'],
    ['32 degF == 0 degC', 'true'],
    ['32 degF < 0 degC', 'false'],
    ['0 degC > 20 degF', 'true'],
    ['½ of 10', '5'],
  ])('computes %s', async (expression, value) => {
    expect(await calculate(expression)).toBe(value);
  });

  it.each([
    ['17.5% * 2349', '411.075'],
    ['17.5% of 2,349', '411.075'],
    ['200 + 5%', '210'],
    ['200 + 5% - 10%', '189'],
    ['5% + 3', '3.05'],
    ['5% + 3%', '0.08'],
    ['100 / 5%', '2000'],
    ['(2+3)% of 50', '2.5'],
    ['3 percent of 50', '1.5'],
  ])('takes the percentage of %s', async (expression, value) => {
    expect(await calculate(expression)).toBe(value);
  });

  it.each([
    ['5 miles to km', '8.04672 km'],
    ['5 feet in cm', '152.4 cm'],
    ['6 ft 2 in to cm', '187.96 cm'],
    ['2 hours 30 minutes', '2.5 hours'],
    ['20 degC to degF', '68 °F'],
    ['20 °C in °F', '68 °F'],
    ['-40 C to F', '-40 °F'],
    ['60 miles per hour in km/h', '96.56064 km/h'],
    ['100 mph to km/h', '160.9344 km/h'],
    ['5 min to s', '300 s'],
    ['10 square meters to sqft', '107.6391 sqft'],
    ['3 litres to gallons', '0.79251616 gallons'],
    ['5 kilometres to mile', '3.106856 mile'],
    ['5 pounds to kg', '2.2679619 kg'],
    ['1 GiB to MB', '1073.7418 MB'],
    ['1 GiB to B', '1073741824 B'],
    ['72 kg to lb', '158.73283 lb'],
    ['350 degF to degC', '176.66667 °C'],
    ['1 lightyear to m', '9460730472580800 m'],
    ['123456789.123 s to s', '123456789.12 s'],
    ['4 J/°C', '4 J/°C'],
    ['5 KM to miles', '3.106856 miles'],
    ['1 kWh to kcal', '860.42065 kcal'],
    ['5 m ^ 3', '5 m^3'],
    ['5 km / 2 h', '2.5 km/h'],
    ['50 kg * 9.81 m/s^2', '490.5 N'],
    ['5 km / 2 m', '2500'],
  ])('converts %s', async (expression, value) => {
    expect(await calculate(expression)).toBe(value);
  });

  it.each([
    ['1/0', 'division by zero'],
    ['sqrt(-4)', 'the result is not a real number'],
    ['10^10^10', 'too large'],
    ['1e1001', 'not a supported number'],
    ['5 miles + 3 kg', 'the units do not measure the same thing'],
    ['5 m + 3', 'a value lacks its unit'],
    ['km', 'add a number'],
    ['5 USD to EUR', 'Exchange rates of currencies are not available'],
    ['5 dollars to euros', 'Exchange rates of currencies are not available'],
    ['$5 + €3', 'Exchange rates of currencies are not available'],
    ['1 light year', 'Did you mean lightyear'],
    ['sqrt', 'write its argument in brackets'],
    ['sqrt(2,349)', 'without thousands separators'],
    ['round(5.678 m)', 'an argument is missing'],
    ['3 < 4 < 5', 'no variables, lists, strings'],
    ['(3 > 2) + 1', 'compare last'],
    ['1 to', 'Write one expression'],
    ['  ', 'empty'],
    ['sin 30', 'no operator between'],
    ['1,5 + 2', `The comma in '1,5' is ambiguous`],
    ['1.234,5', 'Write decimals with a point'],
    ['(12,34) * 2', 'is ambiguous'],
  ])('names what is wrong with %s', async (expression, reason) => {
    await expect(calculate(expression)).rejects.toThrow(reason);
  });

  it('gives the expression and its value to the user interface', async () => {
    const { output } = await runTool(tool, { expression: '5 miles to km' });
    expect(output.details).toEqual({ expression: '5 miles to km', value: '8.04672 km' });
  });

  it('computes the same after an expression that it refused', async () => {
    await expect(calculate('sin(1e15) ^ 1e-999 + sin(1e999)')).rejects.toThrow();
    expect(await calculate('acos(0.5) + sqrt(2)')).toBe('2.4614111135697');
  });
});

describe('calculator, as a sandbox', () => {
  it.each([
    'constructor',
    '__proto__',
    'toString',
    'this',
    'cos.constructor',
    'cos.constructor("return process")()',
    'cos["constructor"]("return process")()',
    '"".constructor.constructor("return process")()',
    'hasOwnProperty(1)',
    'toString(1)',
    'import({ a: 1 })',
    'createUnit("foo")',
    'evaluate("1")',
    'parse("1")',
    'simplify("x")',
    'derivative("x", "x")',
    'config({})',
    'reviver(1, 2)',
    'chain(1)',
    'typed("a")',
    'help(cos)',
    'unit("5 km")',
    'bignumber("1")',
    'random()',
    'a = 3',
    'f(x) = x',
    'x -> x',
    '[1, 2, 3]',
    '1:1e9',
    '{ a: 1 }',
    '"text"',
    'true',
    'null',
    'Infinity',
    '1; 2',
    '1\n2',
    '3 ? 4 : 5',
    "5'",
    '5 & 3',
    'ones(1e6, 1e6)',
    'zeros(1e9)',
    'range(0, 1e9)',
    'map([1], f)',
    'to(5 m, cm)',
  ])('X20: computes nothing of %s', async (expression) => {
    await expect(calculate(expression)).rejects.toThrow();
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
  });

  it.each([
    'factorial(1e9)',
    '5!!!',
    `5${'!'.repeat(400)}`,
    'combinations(1e9, 5e8)',
    'permutations(1e9)',
    'sinh(1e10)',
    'gcd(10^900, 7)',
    'mod(1e999, 3)',
    'sin(1e900)',
    'atan(1e900)',
    '9^9^9^9^9',
    `${'('.repeat(200)}1${')'.repeat(200)}`,
    '['.repeat(400),
    `${'2^'.repeat(240)}2`,
    'f('.repeat(200),
    '1'.repeat(501),
  ])('refuses %s immediately', async (expression) => {
    await expect(calculate('1')).resolves.toBe('1');
    const start = process.cpuUsage().user / 1_000;
    await expect(calculate(expression)).rejects.toThrow();
    expect(process.cpuUsage().user / 1_000 - start).toBeLessThan(1_000);
  });

  const pieces = (
    '0 1 2 7 0.5 1e300 1e-300 999999999999999999 pi e x i + - * / ^ % ! ( ( ) ) , m km/h s degC percent to in ' +
    'sqrt( exp( log( sin( acos( mod( factorial( nthRoot( combinations( min( = < [ ] " . $ ° constructor'
  ).split(' ');

  it('either computes or throws one short sentence or two, and never takes long', async () => {
    const expressions = fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(expressions, async (parts) => {
        const expression = parts.join(' ').slice(0, 500);
        const start = process.cpuUsage().user / 1_000;
        const result = await calculate(expression).catch((error: unknown) => error);
        const text = result instanceof Error ? result.message : result;
        expect(typeof text === 'string' && text.length > 0 && text.length < 700).toBe(true);
        expect(text).not.toMatch(/NaN|Infinity|undefined|TypeError|\[object/u);
        expect(process.cpuUsage().user / 1_000 - start).toBeLessThan(2_000);
      }),
      { numRuns: 300 },
    );
  });

  it('adds, subtracts and multiplies integers exactly', async () => {
    const integers = fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n });
    await fc.assert(
      fc.asyncProperty(integers, integers, async (a, b) => {
        expect(await calculate(`(${a}) + (${b})`)).toBe(String(a + b));
        expect(await calculate(`(${a}) - (${b})`)).toBe(String(a - b));
        expect(await calculate(`(${a}) * (${b})`)).toBe(String(a * b));
      }),
      { numRuns: 50 },
    );
  });
});
