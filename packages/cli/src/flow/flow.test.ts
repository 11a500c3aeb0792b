import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, describe, expect, it } from '@jest/globals';
import { scriptedModel, text } from 'millrace/testing';
import type { Environment } from '../environment.js';
import { main } from '../main.js';
import { fakeEnvironment, fakeOutput } from '../terminal/fake-terminal.test-support.js';

const directory = mkdtempSync(join(tmpdir(), 'millrace-flow-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});
const write = (name: string, value: unknown): void => {
  writeFileSync(join(directory, name), typeof value === 'string' ? value : JSON.stringify(value));
};

write('flow.json', {
  version: 1,
  name: 'letter',
  components: {
    begin: { component_name: 'begin', downstream: ['draft'] },
    draft: { component_name: 'agent', params: { llm_id: 'any' }, downstream: ['send'] },
    send: {
      component_name: 'human',
      params: { message: 'Send "{{draft@output}}"?', choices: ['yes', 'no'] },
      downstream: ['say'],
    },
    say: { component_name: 'message', params: { content: '{{draft@output}} {{send@output}}' } },
  },
});
write('form.json', {
  version: 1,
  name: 'form',
  components: {
    begin: { component_name: 'begin', downstream: ['ask'] },
    ask: {
      component_name: 'human',
      params: {
        message: 'Please.',
        fields: {
          sure: { type: 'boolean', label: 'Sure' },
          note: { type: 'text', required: false },
        },
      },
      downstream: ['say'],
    },
    say: { component_name: 'message', params: { content: '{{ask@output}}' } },
  },
});
write('broken.json', {
  version: 1,
  name: 'x',
  components: { begin: { component_name: 'begin', downstream: ['a'] } },
});
write('no.json', '{"version":');
write('deep.json', `{"components":${'['.repeat(100_000)}${']'.repeat(100_000)}}`);
write('canvas.json', {
  dsl: {
    components: {
      begin: { obj: { component_name: 'Begin', params: { prologue: 'Hi' } }, downstream: ['m'] },
      m: {
        obj: { component_name: 'Message', params: { content: ['{sys.query}!'] } },
        downstream: [],
      },
    },
  },
});

const ran = async (argv: readonly string[], changes: Partial<Environment> = {}) => {
  const model = scriptedModel([text('Dear Ann')]);
  const choice = {
    variables: [],
    factory: () => Promise.resolve({ model, about: 'a scripted model', unit: 'tokens' as const }),
  };
  const { environment, out, err } = fakeEnvironment(['flow', ...argv], {
    directory,
    models: [choice],
    ...changes,
  });
  const code = await main(environment);
  return { code, out: out.text(), err: err.text() };
};

describe('npx @millrace/cli flow', () => {
  it('checks a flow: each problem with its path and a fix', async () => {
    expect(await ran(['check', 'flow.json'])).toEqual({
      code: 0,
      out: 'flow.json: no problems\n',
      err: '',
    });
    const { code, out } = await ran(['check', 'broken.json']);
    expect(code).toBe(1);
    expect(out.split('\n').slice(0, 3)).toEqual([
      'broken.json: 2 problems',
      "  components.begin.downstream.0: names 'a', which is not a component here.",
      '    The components are: begin.',
    ]);
    const json = await ran(['check', 'broken.json', '--json']);
    expect([json.code, (JSON.parse(json.out) as { problems: unknown[] }).problems.length]).toEqual([
      1, 2,
    ]);
  });

  it('reads canvases of RAGFlow, and lists what is not mapped', async () => {
    const { code, out } = await ran(['check', 'canvas.json', '--from', 'ragflow']);
    expect([code, out]).toEqual([
      0,
      'canvas.json: no problems\n\nNot mapped:\n  begin, prologue: A greeting is not part of a flow: the chat client shows it.\n',
    ]);
    const { out: answer } = await ran(['run', 'canvas.json', 'Hi', '--from', 'ragflow', '-q']);
    expect(answer).toBe('Hi!\n');
    const wrong = await ran(['run', 'canvas.json', 'Hi']);
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining('Add --from ragflow.')]);
  });

  it.each([
    [['picture', 'broken.json'], "names 'a', which is not a component here"],
    [['check', 'no.json'], "The file 'no.json' is not valid JSON"],
    [['check', 'none.json'], "There is no file 'none.json'."],
    [['check', '.'], "The file '.' cannot be read."],
    [['run', 'deep.json', 'Hi'], 'is nested more than 40 deep'],
    [['run', 'flow.json', 'Hi'], 'pass --answer send=<text>'],
    [
      ['run', 'flow.json', 'Hi', '--answer', 'send=perhaps'],
      "The answer for 'send' is invalid: It must be one of these: yes, no.",
    ],
  ])('fails with the fix: %j', async (argv, expected) => {
    const { code, err } = await ran(argv);
    expect([code, err]).toEqual([1, expect.stringContaining(expected)]);
  });

  it('draws a flow', async () => {
    const { code, out } = await ran(['picture', 'flow.json']);
    expect([code, out.split('\n')[0]]).toEqual([0, 'flowchart TD']);
    expect(out).toContain('n2["send<br/>human"'.replace('["', '[\\"'));
  });

  it('runs a flow, and follows it with a line for each change, or in a terminal', async () => {
    const { code, out } = await ran(['run', 'flow.json', 'Hi', '--live', '--answer', 'send=YES']);
    expect([code, out.split('\n').slice(2)]).toEqual([
      0,
      [
        ...[
          'begin: done',
          'draft: running',
          'draft: done',
          'send: running',
          'send: done',
          'say: done',
        ],
        ...['', 'Dear Ann yes', ''],
      ],
    ]);
    const { stream, text: shown } = fakeOutput();
    const stdout = Object.assign(stream, { isTTY: true, columns: 80 });
    await ran(['picture', 'flow.json', 'Hi', '--live', '--answer', 'send=yes', '--no-color'], {
      stdout,
      env: { LANG: 'C.UTF-8' },
    });
    expect(shown()).toContain(
      '\n○ begin\n○ draft\n○ send\n○ say\n\u001b[4A\u001b[J✓ begin\n○ draft\n',
    );
    expect(shown()).toMatch(/✓ begin\n✓ draft\n✓ send\n✓ say\n\nDear Ann yes\n$/u);
  });

  it('asks a person in the terminal, again after an invalid answer', async () => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    const prompts: string[] = [];
    const lines = ['maybe', 'y', 'Thanks'];
    const stderr = fakeOutput((written) => {
      if (!/: $/u.test(written)) return;
      prompts.push(written);
      setImmediate(() => stdin.write(`${lines.shift() ?? ''}\n`));
    });
    lines.splice(0, 3, 'maybe', '', 'y', 'Thanks');
    const { code, out } = await ran(['run', 'form.json', 'Hi', '-q'], {
      stdin,
      stderr: stderr.stream,
    });
    expect([code, out]).toEqual([0, '{"sure":true,"note":"Thanks"}\n']);
    expect(stderr.text()).toContain("'sure' must be yes or no.");
    expect(prompts).toHaveLength(4);
  });

  it('needs an input', async () => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    const { code, err } = await ran(['run', 'flow.json'], { stdin });
    expect([code, err]).toEqual([2, expect.stringContaining('pass the input of the flow')]);
  });
});
