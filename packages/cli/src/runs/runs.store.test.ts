import { existsSync } from 'node:fs';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createAgent, MillraceError } from 'millrace';
import { journal } from 'millrace/journal';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { openSqlite } from '@millrace/store/sqlite';
import { lastValueFrom, Subject } from 'rxjs';
import { fakeOutput } from '../terminal/fake-terminal.test-support.js';
import { calculating, concluding, echoed, type Home, makeHome } from './runs.test-support.js';

// The first command loads all that there is.
jest.setTimeout(240_000);

let home: Home;
beforeEach(() => {
  home = makeHome();
});
afterEach(() => home.remove());

const failing = () => {
  throw new MillraceError('connection', 'connect ECONNREFUSED');
};

const only = async (): Promise<string> => {
  const ids = await home.ids();
  expect(ids).toHaveLength(1);
  return ids.join();
};

describe('what is asked', () => {
  it('S7: is recorded in a database that only this user can read', async () => {
    await home.ran(['-q', 'Hi']);
    const state = join(home.path, '.local', 'state', 'millrace');
    const modes = await Promise.all(
      [state, join(state, 'millrace.db')].map(async (path) => (await stat(path)).mode & 0o777),
    );
    expect(modes).toEqual([0o700, 0o600]);
    // Closed, it is one file. The others hide the directory from file tools, and note when old runs were removed.
    const names = ['.millrace-store', 'millrace.db', 'millrace.db.pruned'];
    expect((await readdir(state)).sort()).toEqual(names);
  });

  it('S7: is recorded in files that only this user can read, in a directory that is named', async () => {
    const place = join(home.path, 'runs');
    await home.ran(['-q', '--store', place, 'Hi']);
    const calls = join(place, 'calls');
    const call = (await readdir(calls)).find((name) => !name.startsWith('.')) ?? '';
    const file = (await readdir(join(calls, call))).find((name) => name.endsWith('.jsonl')) ?? '';
    const modes = await Promise.all(
      [calls, join(calls, call), join(calls, call, file)].map(
        async (path) => (await stat(path)).mode & 0o777,
      ),
    );
    expect(modes).toEqual([0o700, 0o700, 0o600]);
  });

  it('S7: is found again if earlier runs are files in the default directory', async () => {
    const state = join(home.path, '.local', 'state', 'millrace');
    await home.ran(['-q', '--store', state, 'Hi']);
    const note = `Earlier runs are in files: npx @millrace/cli runs --store ${state}\n`;
    expect(await home.ran(['runs'])).toMatchObject({ err: note });
    expect((await home.ran(['resume', 'last'])).err).toContain(note);
    // The database is in use now, and the files are still named.
    await home.ran(['-q', 'Hi']);
    const id = await only();
    expect(await home.ran(['replay', id])).toMatchObject({ code: 0, err: note });
    expect((await home.ran(['fork', id, '--question', 'Again?'])).err).toContain(note);
    const inFiles = await home.ran(['runs', '--store', state]);
    expect(inFiles).toMatchObject({ code: 0, err: '', out: expect.stringContaining('Hi') });
  });

  it.each([
    [['--no-store', '-q', 'Hi'], {}],
    [['-q', 'Hi'], { MILLRACE_STORE: 'none' }],
  ])('is not recorded with %j and %j', async (argv, env) => {
    expect(await home.ran(argv, undefined, { env })).toEqual({ code: 0, out: 'Hello.\n', err: '' });
    expect(await readdir(home.path)).toEqual([]);
  });

  it('is answered if it cannot be recorded, with a warning', async () => {
    const place = join(home.path, 'file');
    await writeFile(place, '');
    const { code, out, err } = await home.ran(['-q', '--store', place, 'Hi']);
    expect([code, out]).toEqual([0, 'Hello.\n']);
    expect(err).toMatch(
      /^Not recorded: Runs cannot be recorded in .*file: a file has this name\. .*--no-store\.\n$/,
    );
  });

  it('S6: does not mention resuming if nothing could be recorded', async () => {
    const place = join(home.path, 'place');
    await mkdir(place);
    await writeFile(join(place, 'calls'), '');
    const { code, err } = await home.ran(['-q', '--store', place, 'Hi']);
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(/The store in .*calls failed: a file is in the place .*\n {2}store\n$/),
    ]);
  });

  it('continues with a conversation that is named', async () => {
    const ask = (question: string) =>
      home.ran(['-q', '--session', 'trip', question], scriptedModel(echoed));
    expect((await ask('one')).out).toBe('1: one\n');
    expect((await ask('two')).out).toBe('3: two\n');
    expect((await home.ran(['-q', 'three'], scriptedModel(echoed))).out).toBe('1: three\n');
    expect((await home.ran(['runs'])).out).toMatch(/ trip +two\n/);
  });

  it('does not continue an unknown conversation', async () => {
    const { code, err } = await home.ran(['--no-store', '--session', 'trip', 'Hi']);
    expect([code, err]).toEqual([1, expect.stringContaining('Omit --session')]);
  });

  it('is removed when it has ended long ago, and an unfinished one stays', async () => {
    await home.ran(['-q', 'one']);
    await home.ran(['-q', 'two'], scriptedModel(failing));
    await home.ran(['-q', '--keep-days', '0', 'three']);
    expect(await home.ids()).toEqual([]);
  });
});

describe('npx @millrace/cli runs', () => {
  it('says what to do if there is no run', async () => {
    const { code, out } = await home.ran(['runs']);
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/^There are no runs in .*npx @millrace\/cli "2 \+ 2"\n$/),
    ]);
  });

  it.each(['typo', 'typo.db'])(
    'only reads: reports that %s does not exist, and does not make it',
    async (name) => {
      const typo = join(home.path, name);
      const listed = await home.ran(['runs', '--store', typo]);
      expect([listed.code, listed.out]).toEqual([
        0,
        `There are no runs in ${typo}, which does not exist. Ask something: npx @millrace/cli "2 + 2"\n`,
      ]);
      for (const command of ['runs', 'replay', 'resume']) {
        const { code, err } = await home.ran([command, 'some', '--store', typo]);
        expect([code, err]).toEqual([
          1,
          expect.stringContaining(`There is no run 'some' in ${typo}, which does not exist.`),
        ]);
      }
      expect(existsSync(typo)).toBe(false);
    },
  );

  it('lists what there is, the newest first', async () => {
    await home.ran(['-q', 'one']);
    await home.ran(['-q', 'two'], scriptedModel(failing));
    const { out } = await home.ran(['runs']);
    expect(out).toMatch(/^id .*question\n\w{8} .* failed .* two\n\w{8} .* ended .* one\n$/);
    expect((await home.ran(['runs', '--limit', '1'])).out).toMatch(
      / two\n\nThere are more: use --limit/,
    );
    const lines = (await home.ran(['runs', '--json'])).out.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { status: 'failed', question: 'two', reason: 'connection' },
      { status: 'ended', question: 'one' },
    ]);
  });

  it('shows why a run failed, and how to resume it', async () => {
    const message = `The key is refused, ${'also for this model, '.repeat(20)}today.`;
    const refused = () => {
      throw new MillraceError('auth', message);
    };
    await home.ran(['-q', 'Hi'], scriptedModel(refused));
    const id = (await only()).slice(0, 8);
    const { out } = await home.ran(['runs', id]);
    const why = `✗ ${message}\n  auth\n  Users see: Something went wrong.\n`;
    const how = `Resume it: npx @millrace/cli resume ${id}\n`;
    expect(out).toContain(`${why}${how}`);
    expect(JSON.parse((await home.ran(['runs', id, '--json'])).out)).toMatchObject({
      error: { code: 'auth', message, retryable: false },
    });
    const replayed = await home.ran(['replay', id, '--speed', 'max']);
    expect([replayed.code, replayed.err]).toEqual([0, `${why}${how}`]);
    expect((await home.ran(['replay', id, '--speed', 'max', '-q'])).err).toBe(`${why}${how}`);
    expect((await home.ran(['replay', id, '--speed', 'max', '--json'])).err).toBe('');
  });

  it('shows the status and the request of a provider that refused, without the key that it quotes', async () => {
    const key = ['sk-proj', 'ABCDEFGH1234567890abcdefgh'].join('-');
    const refused = () => {
      throw new MillraceError('auth', `Wrong key ${key}.`, { status: 401, requestId: 'req_7' });
    };
    await home.ran(['-q', 'Hi'], scriptedModel(refused));
    const id = (await only()).slice(0, 8);
    const { out } = await home.ran(['runs', id]);
    expect(out).toContain('✗ Wrong key [redacted].\n  auth, status 401, request req_7\n');
    const json = (await home.ran(['runs', id, '--json'])).out;
    const replayed = await home.ran(['replay', id, '--speed', 'max', '--json']);
    expect(JSON.parse(json)).toMatchObject({ error: { status: 401, requestId: 'req_7' } });
    expect([out, json, replayed.out, replayed.err].join()).not.toContain(key);
  });

  it('shows the whole error of a tool that failed', async () => {
    const model = scriptedModel([toolCall('calculator', { expression: '6 *' })], [text('No.')]);
    await home.ran(['-q', 'Hi'], model);
    const { toolErrors, error } = JSON.parse(
      (await home.ran(['runs', await only(), '--json'])).out,
    ) as Readonly<Record<string, unknown>>;
    expect(error).toBeUndefined();
    expect(toolErrors).toMatchObject([{ name: 'calculator', message: expect.stringMatching(/./) }]);
  });

  it('S7: reads the database of a program that has it open, and writes to it', async () => {
    const place = join(home.path, 'program.db');
    const store = openSqlite(place);
    const model = scriptedModel([text('Hello.')]);
    await createAgent({ model, use: [journal(store.calls)] }).call('From a program');
    expect(await home.ran(['-q', '--store', place, 'From the command'])).toEqual({
      ...{ code: 0, out: 'Hello.\n', err: '' },
    });
    const { code, out, err } = await home.ran(['runs', '--store', place]);
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/ From the command\n[^]* From a program\n/);
    await lastValueFrom(store.close$(), { defaultValue: undefined });
  });

  it('shows one of them, with its picture and its steps', async () => {
    await home.ran(['-q', 'What is 6 * 7?'], calculating());
    const id = await only();
    const { code, out } = await home.ran(['runs', id.slice(0, 4)]);
    expect(code).toBe(0);
    expect(out).toMatch(/^\w{16} {2}ended {2}.* a scripted model\n› What is 6 \* 7\?\n/);
    expect(out).toMatch(/← calculator 42 [^]*\nSo: 42\n[^]*\ncalculator {2}.*r\|/);
    expect(out).toMatch(/\nstep .*\ncall .*\nopen .*\n1 .*\n1\/0\/intent .*\n1\/0 +tool .*: 42\n/);
    expect(out).toMatch(new RegExp(`npx @millrace/cli fork ${id.slice(0, 8)} --at <step>\\n$`));
  });

  it('fits a terminal of 40 columns, with its steps', async () => {
    const narrow = async (argv: readonly string[]) => {
      const out = fakeOutput();
      const stdout = Object.assign(out.stream, { isTTY: true, columns: 40 });
      await home.ran(argv, undefined, { stdout, env: { NO_COLOR: '1' } });
      return out.text().split('\n');
    };
    await home.ran(['What is 6 * 7, and why is it the answer to all of it?'], calculating());
    const list = await narrow(['runs']);
    const shown = await narrow(['runs', await only()]);
    expect(list).toEqual([
      expect.stringMatching(/^id {8}.*status {2}question$/),
      expect.stringMatching(/^\w{8} {2}.*ended {3}What is 6 .*…$/),
      '',
    ]);
    expect(shown).toContainEqual(expect.stringMatching(/^1\/0 +tool +\S/));
    for (const line of [...list, ...shown]) {
      if (!line.startsWith('  npx ')) expect(line.length).toBeLessThanOrEqual(40);
    }
  });

  it('lists the ids if one is unknown or fits several', async () => {
    await home.ran(['-q', 'one']);
    await home.ran(['-q', 'two']);
    expect(await home.ran(['runs', 'nothing'])).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /There is no run 'nothing' in .*state\/millrace\/millrace\.db\. "npx @millrace\/cli runs" lists/,
      ),
    });
    const [id = ''] = await home.ids();
    const near = `${id.slice(0, 7)}${id[7] === '0' ? '1' : '0'}`;
    const meant = `There is no run '${near}' in `;
    const { err } = await home.ran(['resume', near]);
    expect(err).toContain(meant);
    expect(err).toContain(`Did you mean ${id.slice(0, 8)}`);
    expect(await home.ran(['replay', ' '])).toMatchObject({ code: 2 });
  });
});

describe('npx @millrace/cli replay', () => {
  it('S7: shows a run again as it was', async () => {
    const live = await home.ran(['What is 6 * 7?'], calculating());
    const again = await home.ran(['replay', await only(), '--speed', 'max'], scriptedModel());
    expect(again).toEqual({ code: 0, out: live.out.replace(/^.*\n/, ''), err: '' });
  });

  it('S7: gives the same events and the same answer', async () => {
    const live = await home.ran(['--json', 'What is 6 * 7?'], calculating());
    const id = await only();
    expect((await home.ran(['replay', id, '--follow', '--json'])).out).toBe(live.out);
    expect((await home.ran(['replay', id, '--speed', 'max', '-q'])).out).toBe('So: 42\n');
  });
});

describe('npx @millrace/cli resume', () => {
  it('S6: resumes a run that failed, and does again what was not done', async () => {
    const model = scriptedModel([toolCall('calculator', { expression: '6 * 7' })], failing);
    const { code, err } = await home.ran(['What is 6 * 7?'], model);
    const id = await only();
    expect(code).toBe(1);
    expect(err).toContain(`Resume it: npx @millrace/cli resume ${id.slice(0, 8)}\n`);
    const resumed = await home.ran(['resume', id.slice(0, 8)], scriptedModel([text('It is 42.')]));
    expect([resumed.code, resumed.err]).toEqual([0, '']);
    expect(resumed.out).toMatch(/^Millrace, .*\n› What is 6 \* 7\?\n\nIt is 42\.\n/);
    expect(await home.ran(['resume', id])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/This run has ended.*npx @millrace\/cli replay/),
    });
  });

  it('S8: resumes a run that a signal has ended between two steps', async () => {
    const terminate$ = new Subject<void>();
    const model = scriptedModel(() => {
      terminate$.next();
      return [toolCall('calculator', { expression: '6 * 7' })];
    });
    const { code, err } = await home.ran(['-q', 'What is 6 * 7?'], model, { terminate$ });
    const id = (await only()).slice(0, 8);
    expect([code, terminate$.observed]).toEqual([143, false]);
    expect(err).toMatch(
      /^\nShutting down: .*\nStopped\. Resume it: npx @millrace\/cli resume \w{8}\n$/,
    );
    const hint = `${id} is unfinished. Resume it: npx @millrace/cli resume ${id}\n`;
    expect((await home.ran(['runs'])).out).toContain(hint);
    const resumed = await home.ran(['resume', id, '-q'], scriptedModel(concluding));
    expect(resumed).toEqual({ code: 0, out: 'So: 42\n', err: '' });
  });

  it('names the store again if it was named', async () => {
    const argv = ['-q', '--store', './my runs', 'Hi'];
    const { err } = await home.ran(argv, scriptedModel(failing), { directory: home.path });
    expect(err).toMatch(/npx @millrace\/cli resume \w{8} --store '\.\/my runs'\n$/);
  });

  it('asks the same model as before, or says what it lacks', async () => {
    await home.ran(['-q', 'Hi'], scriptedModel(failing));
    const { code, err } = await home.ran(['resume', await only()], undefined, {
      models: undefined as never,
    });
    expect([code, err]).toEqual([
      1,
      expect.stringContaining("No provider is configured for the model 'scripted"),
    ]);
  });
});
