import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, tool } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { evaluated } from '../evaluated.test-support.js';
import { type EvalMatchers, evalMatchers } from './index.js';

const directory = mkdtempSync(join(tmpdir(), 'millrace-evals-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

expect.extend(evalMatchers);

// As the README says.
declare module 'expect' {
  // eslint-disable-next-line @typescript-eslint/no-empty-object-type, @typescript-eslint/no-unused-vars -- both are the form of a merge
  interface Matchers<R extends void | Promise<void>, T = unknown> extends EvalMatchers<R> {}
}

describe('evalMatchers', () => {
  const variables = { ...process.env };
  afterEach(() => {
    process.env = { ...variables };
  });
  const failing = (check: () => void): string => {
    try {
      check();
    } catch (error) {
      return String((error as Error).message);
    }
    return 'passed';
  };

  it('checks the tools of a reply', async () => {
    const model = scriptedModel([toolCall('a', { id: 1 })], [text('x')]);
    const a = tool({ name: 'a', description: 'A.', run: () => 'a' });
    const called = await createAgent({ model, tools: [a] }).call('x');
    expect(called).toCallTools(['a']);
    expect(called).not.toCallTools([]);
    expect(called).toCallTools([], { allowOthers: true });
    expect(failing(() => expect(called).toCallTools(['b', 'a']))).toBe(
      'Expected b, a; called a({"id":1}).',
    );
    expect(failing(() => expect(called).not.toCallTools(['a']))).toContain(
      'Expected other tool calls',
    );
    expect(failing(() => expect('x').toCallTools(['a']))).toContain('toCallTools() needs a reply');
  });

  it('checks the values of a summary, and shows the table', async () => {
    const result = await evaluated({ a: 1, b: 0.6 });
    expect(result).toReach({ scores: { right: 0.8 }, passRate: 1 });
    const message = failing(() => expect(result).toReach({ scores: { right: 0.81 }, passRate: 1 }));
    expect(message).toContain('Expected right of at least 0.81, but it is 0.80.');
    expect(message).toMatch(/^b +0.60 +100 %/mu);
    expect(failing(() => expect(result).toReach({ scores: { rigth: 0.8 } }))).toContain(
      "no scorer 'rigth'. There are: right.",
    );
    expect(await evaluated({ a: 1, b: undefined })).not.toReach({ passRate: 0.5 });
    expect(failing(() => expect(undefined).toReach({}))).toContain('needs a summary');
  });

  it('compares a summary with a file, which it writes unless in CI', async () => {
    const file = join(directory, 'matched.json');
    const [good, bad] = [await evaluated({ a: 1 }), await evaluated({ a: 0 })];
    process.env['CI'] = 'true';
    expect(failing(() => expect(good).toMatchBaseline(file))).toContain('There is no baseline');
    process.env['CI'] = '';
    expect(good).toMatchBaseline(file);
    process.env['CI'] = '1';
    expect(good).toMatchBaseline(file);
    expect(failing(() => expect(bad).toMatchBaseline(file))).toContain(
      'worse: a: right 1.00 → 0.00',
    );
    expect(bad).toMatchBaseline(file, { score: 1, passRate: 1 });
    process.env['MILLRACE_EVALS'] = 'update';
    expect(bad).toMatchBaseline(file);
    expect(failing(() => expect('x').toMatchBaseline(file))).toContain('needs a summary');
    const failed = await evaluated({ a: NaN });
    expect(failing(() => expect(failed).toMatchBaseline(file))).toContain('was not written');
  });
});
