import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { of, Subject } from 'rxjs';
import type { Environment } from '../environment.js';
import { main } from '../main.js';
import { fakeEnvironment, fakeOutput } from '../terminal/fake-terminal.test-support.js';

const directory = mkdtempSync(join(tmpdir(), 'millrace-run-eval-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});
writeFileSync(
  join(directory, 'a.mjs'),
  `import { evaluate } from ${JSON.stringify(new URL('../../../evals/dist/bundle/index.js', import.meta.url).href)};
const usage = { inputTokens: 1, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
const reply = { text: 'x', toolCalls: [], usage, iterations: 1 };
const call = (input) => input === 'hang' ? new Promise(() => {}) : Promise.resolve(reply);
const cases = ['one', 'two', ...(globalThis.hangs ? ['hang'] : [])].map((input) => ({ input }));
export default evaluate(call, cases, { 'a long name of a scorer': () => 1, other: () => 1 });`,
);

const ran = async (argv: readonly string[], changes: Partial<Environment> = {}) => {
  const { environment, out, err } = fakeEnvironment(['eval', ...argv], { directory, ...changes });
  return { code: await main(environment), out: out.text(), err: err.text() };
};

describe('the command eval', () => {
  it('counts cases in a terminal, on one line that it clears', async () => {
    const { stream, text } = fakeOutput();
    const stderr = Object.assign(stream, { isTTY: true });
    const { code } = await ran(['a.mjs'], { stderr });
    const clear = '\r\u001b[K';
    expect([code, text()]).toEqual([0, `${clear}1 of 2 cases${clear}2 of 2 cases${clear}`]);
  });

  it('fits a terminal of 40 columns', async () => {
    const { stream, text } = fakeOutput();
    const stdout = Object.assign(stream, { isTTY: true, columns: 40 });
    expect((await ran(['a.mjs', '--no-color'], { stdout })).code).toBe(0);
    expect(text().split('\n').slice(0, 4)).toEqual([
      'a.mjs',
      'one',
      '  a long name of a scorer 1.00',
      '  other 1.00 · pass 100 % · tokens 1',
    ]);
  });

  it('ends with 143 at a signal, after the table of the cases that have ended', async () => {
    const terminate$ = new Subject<void>();
    const { stream, text } = fakeOutput();
    const stderr = Object.assign(stream, { isTTY: true });
    Object.assign(globalThis, { hangs: true });
    writeFileSync(join(directory, 'b.mjs'), `export { default } from './a.mjs?hangs';`);
    const ending = ran(['b.mjs', '--no-color'], {
      stderr: watched(stderr, '2 of 3', terminate$),
      terminate$,
    });
    const { code, out } = await ending;
    expect([code, out]).toEqual([143, expect.stringContaining('2 cases')]);
    expect(text()).toContain('Stopped after 2 of 3 cases. Nothing was compared.\n');
    expect(await ran(['a.mjs'], { interrupt$: of(1) })).toMatchObject({
      code: 130,
      out: 'a.mjs\n',
    });
  });
});

/** Signals once a text is written. */
const watched = <T extends NodeJS.WritableStream>(
  stream: T,
  wanted: string,
  signal$: Subject<void>,
): T => {
  const write = stream.write.bind(stream);
  Object.assign(stream, {
    write: (text: string) => {
      const isReady = write(text);
      if (text.includes(wanted)) setImmediate(() => signal$.next());
      return isReady;
    },
  });
  return stream;
};
