import { Writable } from 'node:stream';
import { expect, it } from '@jest/globals';
import { makeHome } from '../runs/runs.test-support.js';

const failing = (code: string): Writable =>
  new Writable({
    write: (_text, _encoding, done) => done(Object.assign(new Error(code), { code })),
  });

const commands: readonly (readonly string[])[] = [
  ['--quiet', '2 + 2'],
  ['--json', '2 + 2'],
  ['runs'],
  ['runs', '--json'],
  ['runs', '-q'],
  ['runs', 'ID'],
  ['runs', 'ID', '--json'],
  ['replay', 'ID', '--speed', '1000'],
  ['replay', 'ID', '--json', '--speed', '1000'],
  ['fork', 'ID', '--at', '1'],
];

it('S7: a command whose output is lost fails and names the fix, unless its reader has left', async () => {
  const home = makeHome();
  await home.ran(['Hello']);
  const [id = ''] = await home.ids();
  for (const command of commands) {
    const argv = command.map((word) => (word === 'ID' ? id : word));
    const full = await home.ran(argv, undefined, { stdout: failing('ENOSPC') });
    expect([argv, full.code, full.err]).toEqual([
      argv,
      1,
      expect.stringContaining('The output is incomplete: it could not be written (ENOSPC).'),
    ]);
    const left = await home.ran(argv, undefined, { stdout: failing('EPIPE') });
    expect([argv, left.code, left.err]).toEqual([argv, 0, '']);
  }
  await home.remove();
});
