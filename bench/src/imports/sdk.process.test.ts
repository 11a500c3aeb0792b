import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';

/** Runs in a process of its own, which counts the files of the SDK that it loads; `breaking` makes them fail to load. */
const prelude = `
  import { register } from 'node:module';
  import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';

  const watch = (sdk, isBroken = false) => {
    const { port1, port2 } = new MessageChannel();
    const hook = \`
      let data;
      export const initialize = (given) => (data = given);
      export const load = async (url, context, next) => {
        if (!url.includes('/node_modules/' + data.sdk + '/')) return next(url, context);
        data.port.postMessage(url);
        if (data.isBroken) throw new Error('a broken file');
        return next(url, context);
      };\`;
    register('data:text/javascript,' + encodeURIComponent(hook), {
      data: { port: port2, sdk, isBroken },
      transferList: [port2],
    });
    let count = 0;
    return () => {
      while (receiveMessageOnPort(port1) !== undefined) count += 1;
      return count;
    };
  };
  const print = (what) => console.log(JSON.stringify(what));
`;

const printed = async (script: string): Promise<unknown> => {
  const args = ['--input-type=module', '-e', prelude + script];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, {
    cwd: import.meta.dirname,
  });
  expect(stderr).toBe('');
  return JSON.parse(stdout);
};

describe.each([
  { name: 'openai', sdk: 'openai' },
  { name: 'anthropic', sdk: '@anthropic-ai/sdk' },
])('the SDK of $name', ({ name, sdk }) => {
  it('loads once a model exists, not with the import, and keeps no process alive', async () => {
    const counts = await printed(`
      const loaded = watch('${sdk}');
      const { ${name} } = await import('@millrace/${name}');
      const imported = loaded();
      ${name}('a-model', { apiKey: 'sk-test-0123456789' });
      const created = loaded();
      process.on('exit', () => print([imported, created, loaded() > 50]));
    `);
    expect(counts).toEqual([0, 0, true]);
  });

  it('fails the call with `config` if it cannot be loaded, and nothing before it', async () => {
    const result = await printed(`
      const loaded = watch('${sdk}', true);
      const { ${name} } = await import('@millrace/${name}');
      const { createAgent } = await import('millrace');
      const agent = createAgent({ model: ${name}('a-model', { apiKey: 'sk-test-0123456789' }) });
      // The model has tried to load it by then.
      await new Promise((resolve) => process.once('beforeExit', resolve));
      const before = loaded();
      const { code, message } = await agent.call('Hi').catch((error) => error);
      print({ before, code, message });
    `);
    expect(result).toEqual({
      before: 1,
      code: 'config',
      message:
        "The SDK of the model's vendor failed to load. Install the dependencies again: a broken file",
    });
  });
});
