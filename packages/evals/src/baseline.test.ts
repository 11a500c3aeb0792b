import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { evaluated } from './evaluated.test-support.js';
import { checkBaseline, hasBaseline } from './file/index.js';
import { baselineOf, compareToBaseline, describeChanges, type EvalSummary } from './index.js';

const directory = mkdtempSync(join(tmpdir(), 'millrace-evals-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

const changes = (before: EvalSummary, after: EvalSummary, tolerances = {}) => {
  const comparison = compareToBaseline(after, baselineOf(before), tolerances);
  return [comparison.isRegression, ...describeChanges(comparison)];
};

describe('baselineOf', () => {
  it('has sorted cases and keys, rounded numbers, a version, and no times', async () => {
    expect(baselineOf(await evaluated({ b: 1 / 3, a: 1 }))).toBe(`{
  "cases": [
    {
      "errors": 0,
      "id": "a",
      "iterations": 1,
      "passRate": 1,
      "scores": {
        "right": 1
      },
      "tokens": 10,
      "trials": 1
    },
    {
      "errors": 0,
      "id": "b",
      "iterations": 1,
      "passRate": 0,
      "scores": {
        "right": 0.3333
      },
      "tokens": 10,
      "trials": 1
    }
  ],
  "name": "evaluation",
  "version": 1
}
`);
  });

  it('is the same text for cases in any order, and equals itself', async () => {
    const score = fc.constantFrom(0, 1 / 3, 0.5, 1, NaN, undefined);
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.tuple(fc.string({ minLength: 1 }), score), {
          minLength: 1,
          selector: ([id]) => id.trim(),
        }),
        async (entries) => {
          const named = entries.filter(([id]) => id.trim() === id && id !== '');
          fc.pre(named.length > 0);
          const one = await evaluated(Object.fromEntries(named));
          const other = await evaluated(Object.fromEntries([...named].reverse()));
          expect(baselineOf(other)).toBe(baselineOf(one));
          expect(compareToBaseline(other, baselineOf(one))).toEqual({
            isRegression: false,
            changes: [],
          });
        },
      ),
    );
  });
});

describe('compareToBaseline', () => {
  it('reports by case what got worse, better and new, worse first', async () => {
    const before = await evaluated({ a: 1, b: 0, c: 1, gone: 1 });
    const after = await evaluated({ a: 0.75, b: 1, c: undefined, fresh: 1 });
    expect(changes(before, after)).toEqual([
      true,
      'worse: a: right 1.00 → 0.75',
      'worse: c: right 1.00 → 0.00',
      'worse: c: pass rate 100 % → 0 %',
      'worse: c: errors 0 → 1',
      'worse: gone is missing',
      'better: b: right 0.00 → 1.00',
      'better: b: pass rate 0 % → 100 %',
      'new: fresh',
    ]);
  });

  it('is no regression: a new case, a new scorer, and what is within the tolerance', async () => {
    const before = await evaluated({ a: 1 });
    expect(changes(before, await evaluated({ a: 0.95, b: 0 }))).toEqual([false, 'new: b']);
    expect(changes(before, await evaluated({ a: 0.94 }))).toEqual([
      true,
      'worse: a: right 1.00 → 0.94',
    ]);
    expect(changes(before, await evaluated({ a: 0.7 }), { score: 0.3 })).toEqual([false]);
    const more = await evaluated({ a: 1 }, { scorers: ['right', 'polite'] });
    expect(changes(before, more)).toEqual([false, 'new: a: polite none → 1.00']);
    expect(changes(more, before)).toEqual([true, 'worse: a: polite 1.00 → none']);
  });

  it('is a regression: a score that failed, and more tokens than allowed', async () => {
    const before = await evaluated({ a: 1 });
    expect(changes(before, await evaluated({ a: NaN }))).toEqual([
      true,
      'worse: a: right 1.00 → none',
      'worse: a: pass rate 100 % → 0 %',
      'worse: a: errors 0 → 1',
    ]);
    const more = await evaluated({ a: 1 }, { tokens: 13 });
    expect(changes(before, more)).toEqual([false]);
    expect(changes(before, more, { tokens: 0.3 })).toEqual([false]);
    expect(changes(before, more, { tokens: 0.2 })).toEqual([true, 'worse: a: tokens 10 → 13']);
    expect(changes(more, before, { tokens: 0.2 })).toEqual([false, 'better: a: tokens 13 → 10']);
  });

  it.each([
    ['', 'it is not a JSON object'],
    ['{"version":1', 'it is not a JSON object'],
    ['[]', 'it is not a JSON object'],
    ['{"version":2}', "its 'version' must be 1, not 2"],
    ['{"cases":[]}', "its 'version' must be 1, not undefined"],
    ['{"version":1}', "it has no list of 'cases'"],
    ['{"version":1,"cases":[{"id":"a"}]}', 'case 1 has a missing or invalid field'],
    ['{"version":1,"cases":[null]}', 'case 1 has a missing or invalid field'],
  ])('refuses a damaged baseline: %s', async (given, message) => {
    const result = await evaluated({ a: 1 });
    expect(() => compareToBaseline(result, given)).toThrow(message);
    const twice = JSON.parse(baselineOf(result)) as { cases: unknown[] };
    twice.cases.push(twice.cases[0]);
    expect(() => compareToBaseline(result, JSON.stringify(twice))).toThrow('the same id');
    const wrong = { scores: 1 } as never;
    expect(() => compareToBaseline(result, baselineOf(result), wrong)).toThrow(
      "Did you mean 'score'?",
    );
  });

  it('ignores unknown fields and a byte order mark', async () => {
    const result = await evaluated({ a: 1 });
    const later = `\ufeff${baselineOf(result).replace('{', '{"more":{},')}`;
    expect(compareToBaseline(result, later).isRegression).toBe(false);
  });
});

describe('checkBaseline', () => {
  it('writes a missing file, compares with it, and writes it again with update', async () => {
    const file = join(directory, 'new', 'support.json');
    const [good, bad] = [await evaluated({ a: 1 }), await evaluated({ a: 0 })];
    expect(checkBaseline(good, file, { isCi: true })).toEqual({ status: 'missing' });
    expect(checkBaseline(good, file)).toEqual({ status: 'written' });
    expect(readFileSync(file, 'utf8')).toBe(baselineOf(good));
    expect(checkBaseline(good, pathToFileURL(file), { isCi: true }).status).toBe('compared');
    expect(checkBaseline(bad, file)).toMatchObject({ comparison: { isRegression: true } });
    expect(readFileSync(file, 'utf8')).toBe(baselineOf(good));
    expect(checkBaseline(bad, file, { update: true })).toEqual({ status: 'written' });
    expect(checkBaseline(bad, file)).toMatchObject({ comparison: { isRegression: false } });
    expect(readdirSync(join(directory, 'new'))).toEqual(['support.json']);
  });

  it('writes nothing if calls failed, and keeps the file that is there', async () => {
    const file = join(directory, 'kept.json');
    const failed = await evaluated({ a: undefined });
    expect(checkBaseline(failed, file)).toEqual({ status: 'refused' });
    writeFileSync(file, 'mine');
    expect(checkBaseline(failed, file, { update: true })).toEqual({ status: 'refused' });
    expect(readFileSync(file, 'utf8')).toBe('mine');
    expect(() => checkBaseline(failed, directory)).toThrow('cannot be read');
    const named = `The baseline '${file}' cannot be read: it is not a JSON object. Restore the file`;
    expect(() => checkBaseline(failed, file)).toThrow(named);
    expect(() => hasBaseline(pathToFileURL(file))).toThrow(named);
    expect(hasBaseline(join(directory, 'absent.json'))).toBe(false);
    writeFileSync(file, baselineOf(await evaluated({ a: 1 })));
    expect(hasBaseline(file)).toBe(true);
  });

  it('is an error if it cannot be written, and leaves no draft', async () => {
    const result = await evaluated({ a: 1 });
    writeFileSync(join(directory, 'plain'), '');
    expect(() =>
      checkBaseline(result, join(directory, 'plain', 'x.json'), { update: true }),
    ).toThrow('cannot be written');
    expect(() => checkBaseline(result, directory, { update: true })).toThrow('cannot be written');
    expect(
      readdirSync(tmpdir()).filter(
        (name) => name.endsWith('.tmp') && name.startsWith('millrace-evals'),
      ),
    ).toEqual([]);
  });
});
