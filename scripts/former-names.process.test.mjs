import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from '@jest/globals';
import { root } from './workspaces.mjs';

const hooks = pathToFileURL(join(root, 'scripts/former-names.mjs')).href;

/** Runs a program in the root, as a module, and returns its exit code and its output. */
function run(program, ...options) {
  const args = [...options, '--input-type=module', '--eval', program];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: root,
    encoding: 'utf8',
  });
  return { status, output: `${stdout}${stderr}` };
}

it('imports each module by its former name', () => {
  const program = `
    import { formerNames } from '${hooks}';
    for (const [former, modules] of Object.entries(formerNames)) {
      const names = Object.keys(await import(former));
      const today = await Promise.all(
        modules.filter((it) => it === former || !Object.hasOwn(formerNames, it)).map((it) => import(it)),
      );
      console.log(former, today.flatMap(Object.keys).every((it) => names.includes(it)));
    }`;
  const { status, output } = run(program, '--import', hooks);
  expect(output).toContain('@millrace/dialects true\n');
  expect(output).not.toContain('false');
  expect(status).toBe(0);
});

it('takes options by their former names', () => {
  const program = `
    import { ollama, openai, profiles } from '@millrace/openai';
    const at = { baseUrl: 'no address', apiKey: 'k' };
    for (const make of [openai, ollama, openai.responses]) {
      try {
        make('m', at);
      } catch ({ message }) {
        console.log(message.includes('baseURL'));
      }
    }
    console.log(typeof profiles.openai);`;
  expect(run(program, '--import', hooks).output).toBe('true\ntrue\ntrue\nobject\n');
});

it('also in threads, and leaves other names alone', () => {
  const thread = `import('@millrace/core/text-tools').then(({ textTools }) => console.log(typeof textTools));`;
  const program = `
    import { Worker } from 'node:worker_threads';
    import { createAgent } from '@millrace/core';
    console.log(typeof createAgent);
    await import('@millrace/none').catch(({ code }) => console.log(code));
    new Worker(${JSON.stringify(thread)}, { eval: true });`;
  const { status, output } = run(program, '--import', hooks);
  expect(output).toBe('function\nERR_MODULE_NOT_FOUND\nfunction\n');
  expect(status).toBe(0);
});

it('is needed: without it, a former name is unknown', () => {
  expect(run(`await import('@millrace/core/text-tools');`).output).toContain(
    'ERR_MODULE_NOT_FOUND',
  );
});
