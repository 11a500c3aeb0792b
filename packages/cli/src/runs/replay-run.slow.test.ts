import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { createAgent } from 'millrace';
import { journal } from 'millrace/journal';
import { scriptedModel, text } from 'millrace/testing';
import { openFiles } from '@millrace/store';
import { config, lastValueFrom } from 'rxjs';
import { type Home, makeHome } from './runs.test-support.js';

// The first command loads all that there is.
jest.setTimeout(240_000);

let home: Home;
const unhandled = jest.fn();
beforeEach(() => {
  home = makeHome();
  config.onUnhandledError = unhandled;
});
afterEach(() => {
  config.onUnhandledError = null;
  return home.remove();
});

it.each([[['replay']], [['replay', '--json']], [['replay', '--follow']], [['runs']]])(
  '%j of a damaged run prints its error once',
  async (argv) => {
    const directory = join(home.path, 'data');
    const store = openFiles(directory);
    const agent = createAgent({ model: scriptedModel([text('Hi.')]) });
    await agent.call('?', { callId: 'c', use: [journal(store.calls)] });
    await lastValueFrom(store.close$(), { defaultValue: undefined });
    const path = join(directory, 'calls', 'i-c', '000001.jsonl');
    await writeFile(path, (await readFile(path, 'utf8')).replace('preReasoning', 'preReasonong'));
    const { code, err } = await home.ran([...argv, 'c', '--store', directory]);
    expect([code, err.split(path)]).toEqual([1, [expect.any(String), expect.any(String)]]);
    // An error that RxJS reports is printed, too.
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).not.toHaveBeenCalled();
  },
);
