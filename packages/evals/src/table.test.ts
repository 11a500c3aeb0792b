import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createAgent, MillraceError } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { firstValueFrom, map, of, throwError, timer } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { evalTable, evaluate, type EvaluateOptions, type Scorers, summary } from './index.js';

const reply = await createAgent({ model: scriptedModel([text('x')]) }).call('x');
const usage = { inputTokens: 900, outputTokens: 334, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** In virtual time: the call of case n takes n times 700 ms. */
const tableOf = (ids: string[], scorers: Scorers, options: EvaluateOptions, width?: number) => {
  const scheduler = new TestScheduler(() => undefined);
  let table = '';
  scheduler.run(() => {
    const target = (input: unknown) =>
      ids.indexOf(String(input)) === 1
        ? throwError(() => new MillraceError('server', `down \u001b[31m${'very '.repeat(90)}`))
        : timer(ids.indexOf(String(input)) * 700 + 412, scheduler).pipe(
            map(() => ({ ...reply, usage })),
          );
    evaluate(
      target,
      ids.map((input) => ({ input })),
      scorers,
      { scheduler, ...options },
    )
      .pipe(summary())
      .subscribe((result) => (table = evalTable(result, width === undefined ? {} : { width })));
  });
  return table;
};

const values = [1, 0, 0.5];
const scorers: Scorers = {
  correct: ({ trial }) => values[trial - 1] ?? 0,
  tone: ({ id }) => (id.startsWith('refund') ? NaN : 1),
};
const ids = ['order', 'parcel', 'refund without an order'];

describe('evalTable', () => {
  it('has a line for each case, one for all, and the errors', () => {
    expect(tableOf(ids, scorers, { repeats: 3 })).toBe(`\
                            correct          tone  pass  tokens    time
order                    0.50 ±0.50          1.00  67 %    1234  412 ms
parcel                         0.00          0.00   0 %       0    0 ms
refund without an order  0.50 ±0.50       error !   0 %    1234   1.8 s
3 cases                  0.33 ±0.43  0.50 ±0.55 !  22 %     823  741 ms

6 errors:
  parcel: server (3 times)
    down [31mvery very very very very very very very very very very very very
    very very very very very very very very very very very very very very very
    very very very very very very very very very very very very very very very
    very very very very very very very very very very very very very very very …
  refund without an order: config (3 times)
    The scorer 'tone' returned NaN. A score is a number from 0 to 1, true,
    false, or an object { score, reason }.`);
  });

  it('fits 40 columns: as blocks, if the columns do not fit', () => {
    const table = tableOf(ids, scorers, { repeats: 3, cost: () => 0.1234 }, 40);
    expect(table.split('\n').slice(0, 9)).toEqual([
      'order',
      '  correct 0.50 ±0.50 · tone 1.00',
      '  pass 67 % · tokens 1234 · time 412 ms',
      '  cost 0.370',
      'parcel',
      '  correct 0.00 · tone 0.00 · pass 0 %',
      '  tokens 0 · time 0 ms',
      'refund without an order',
      '  correct 0.50 ±0.50 · tone error !',
    ]);
    expect(tableOf(ids.slice(2), { ok: () => 1 }, {}, 44)).toBe(`\
                   ok   pass  tokens    time
refund without…  1.00  100 %    1234  412 ms
1 case           1.00  100 %    1234  412 ms`);
  });

  it('leaves out durations, which differ in every run', async () => {
    const result = await firstValueFrom(
      evaluate(() => of(reply), [{ input: 'a' }], { ok: () => 1 }).pipe(summary()),
    );
    expect(evalTable(result, { time: false })).toBe(`\
          ok   pass  tokens
a       1.00  100 %       0
1 case  1.00  100 %       0`);
  });

  it('lists ten errors, and how many more there are', () => {
    const many = Array.from({ length: 13 }, (_, at) => `case ${at}`);
    const table = tableOf(many, { broken: () => -1 }, {});
    expect(table.split('\n').filter((line) => /^ {2}case/u.test(line))).toHaveLength(10);
    expect(table).toContain('13 errors:');
    expect(table).toContain('  … 3 more');
  });

  it('never exceeds its width, and has no control characters, for any names', async () => {
    const name = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 60 })
      .filter((it) => it.trim() !== '');
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(name, { minLength: 1, maxLength: 4, selector: (it) => it.trim() }),
        fc.uniqueArray(name, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 20, max: 120 }),
        async (inputs, names, width) => {
          const cases = inputs.map((input) => ({ input }));
          const given = Object.fromEntries(
            names.map((it, at) => [it, () => (at === 1 ? NaN : 0.5)]),
          );
          const result = await firstValueFrom(
            evaluate(() => of(reply), cases, given, { repeats: 2 }).pipe(summary()),
          );
          const table = evalTable(result, { width });
          for (const line of table.split('\n')) {
            expect(Array.from(line).length).toBeLessThanOrEqual(width);
            expect(line).not.toMatch(/\p{Cc}/u);
          }
        },
      ),
    );
  });

  it('needs a width of at least 20', () => {
    expect(() => evalTable({} as never, { width: 19 })).toThrow(
      "'width' must be a whole number of at least 20",
    );
  });
});
