import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { scriptedModel } from 'millrace/testing';
import { calculating, concluding, echoed, type Home, makeHome } from './runs.test-support.js';

// The first command loads all that there is.
jest.setTimeout(240_000);

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.remove());

const only = async (): Promise<string> => {
  const ids = await home.ids();
  expect(ids).toHaveLength(1);
  return ids.join();
};

describe('npx @millrace/cli fork', () => {
  it('S7: does a part again, with another result of a tool', async () => {
    await home.ran(['-q', 'What is 6 * 7?'], calculating());
    const from = await only();
    const forked = await home.ran(
      ['fork', from, '--at', '2', '--edit', '1/0=43', '-q'],
      scriptedModel(concluding),
    );
    expect(forked.out).toBe('So: 43\n');
    const [id = ''] = await home.ids();
    expect(forked.err).toBe(`Forked from ${from.slice(0, 8)}: ${id.slice(0, 8)}\n`);
    expect((await home.ran(['runs', id])).out).toContain(`forked from ${from.slice(0, 8)}`);
    expect((await home.ran(['replay', from, '--speed', 'max', '-q'])).out).toBe('So: 42\n');
  });

  it('S7: shows what it keeps, what of it is edited, and its own time alone, also when it is shown again', async () => {
    await home.ran(['-q', 'What is 6 * 7?'], calculating());
    const from = await only();
    const argv = ['fork', from, '--at', '2', '--edit', '1/0=43'];
    const { out } = await home.ran(argv, scriptedModel(concluding));
    const kept = /\n› What is 6 \* 7\?\n {2}kept 1 {2}calculator\(.*\n {2}edited 1\/0 .*: 43\n/;
    expect(out).toMatch(kept);
    const [id = ''] = await home.ids();
    const again = await home.ran(['replay', id, '--speed', 'max']);
    expect(again.out).toBe(out.slice(out.indexOf('›')));
  });

  it('S7: lets the model have said something else', async () => {
    await home.ran(['-q', 'What is 6 * 7?'], calculating());
    const argv = ['fork', await only(), '--at', 'reply', '--edit', '2=It is 44.', '-q'];
    expect((await home.ran(argv, scriptedModel())).out).toBe('It is 44.\n');
  });

  it('S7: asks something else, and knows what was said before', async () => {
    await home.ran(['-q', '--session', 'trip', 'one'], scriptedModel(echoed));
    await home.ran(['-q', '--session', 'trip', 'two'], scriptedModel(echoed));
    const [second = ''] = await home.ids();
    const forked = await home.ran(
      ['fork', second, '--question', 'other', '-q'],
      scriptedModel(echoed),
    );
    expect(forked.out).toBe('3: other\n');
    expect((await home.ran(['-q', '--session', 'trip', 'three'], scriptedModel(echoed))).out).toBe(
      '5: three\n',
    );
  });

  it.each([
    [['--at', '7'], "has no step '7'. It can be forked at: call, open, 1"],
    [['--at', '2', '--edit', '1/0/intent=x'], 'To replace the result of the tool, edit 1/0.'],
    [['--at', '2', '--edit', 'call=x'], 'To change the question, use --question.'],
    [['--at', '2', '--edit', 'open=x'], "The step 'open' cannot be edited"],
    [['--at', '1', '--edit', '1/0=x'], "does not keep a step '1/0'"],
    [['--at', '2', '--edit', '7/0=x'], "does not keep a step '7/0'"],
  ])('refuses %j, and says why', async (argv, why) => {
    await home.ran(['-q', 'What is 6 * 7?'], calculating());
    const { code, err } = await home.ran(['fork', await only(), ...argv]);
    expect([code, err]).toEqual([1, expect.stringContaining(why)]);
    expect(await home.ids()).toHaveLength(1);
  });
});
