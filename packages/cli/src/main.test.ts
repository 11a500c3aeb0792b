import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { type Model, type ModelRequest, MillraceError, textOf } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { concat, NEVER, of, Subject } from 'rxjs';
import type { ModelChoice } from './choose-model.js';
import type { Environment } from './environment.js';
import { fakeEnvironment, fakeInput, fakeOutput } from './terminal/fake-terminal.test-support.js';
import { main } from './main.js';

const choiceOf = (model: Model): ModelChoice => ({
  variables: [],
  factory: () => Promise.resolve({ model, about: 'a scripted model', unit: 'tokens' }),
});

const hello = () => scriptedModel([text('Hello.')]);

/** How many messages there are, and the last of them. */
const echoed = ({ messages }: ModelRequest) => [
  text(`${messages.length}: ${messages.slice(-1).map(textOf).join('')}`),
];

const failing = () => {
  throw new MillraceError('connection', 'connect ECONNREFUSED');
};

const ran = async (
  argv: readonly string[],
  model: Model = hello(),
  changes: Partial<Environment> = {},
) => {
  const { environment, out, err } = fakeEnvironment(argv, {
    models: [choiceOf(model)],
    ...changes,
  });
  const code = await main(environment);
  return { code, out: out.text(), err: err.text() };
};

const endless = () => scriptedModel(concat(of(text('Half an answer')), NEVER));

describe('millrace', () => {
  it('answers a question, and says first what the model is', async () => {
    const { code, out, err } = await ran(['How', 'are you?']);
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(
      /^Millrace, with a scripted model\.\n› How are you\?\n\nHello\.\n\nanswered in /,
    );
    expect(out).toMatch(/\n\nreasoning {2}.*\n.*\n.*\| end\n$/);
  });

  it('answers a question without any model but the demo model', async () => {
    const { environment, out } = fakeEnvironment(['-q', 'What time is it in Tokyo?']);
    expect(await main(environment)).toBe(0);
    expect(out.text()).toMatch(/^It is \d\d:\d\d.* in Tokyo/);
  });

  it('asks what came through the pipe', async () => {
    const { out } = await ran(['-q'], scriptedModel(echoed), {
      stdin: fakeInput('How are you?\n'),
    });
    expect(out).toBe('1: How are you?\n');
  });

  it('asks a question of its own if there is not one', async () => {
    const { code, out } = await ran([]);
    expect(code).toBe(0);
    expect(out).toMatch(/\n› What is 17\.5% of 2349, .* how does backpressure work\?\n/);
  });

  it('waits for a question that comes late', async () => {
    const stdin = new PassThrough();
    const answered = ran(['-q'], scriptedModel(echoed), { stdin });
    await new Promise(setImmediate);
    stdin.end('How are you?\n');
    expect(await answered).toEqual({ code: 0, out: '1: How are you?\n', err: '' });
  });

  it('shows the question of its own on stderr where stdout is for the answer', async () => {
    const { code, out, err } = await ran(['-q']);
    expect([code, out, err]).toEqual([0, 'Hello.\n', expect.stringMatching(/^› What is 17.*\n$/)]);
  });

  it.each([
    [[''], /^error: the question is empty: write one, as in npx @millrace\/cli "2 \+ 2"/],
    [['-'], /^error: standard input was empty: pipe a question into it/],
  ])('refuses %j, with what to do', async (argv, why) => {
    const { code, out, err } = await ran(argv);
    expect([code, out, err]).toEqual([2, '', expect.stringMatching(why)]);
    expect(err).toMatch(/\n\(for more information: npx @millrace\/cli --help\)\n$/);
  });

  it('shows a long question on one line', async () => {
    const { out } = await ran([`Is it\ntrue ${'and so on '.repeat(500)}?`]);
    const [, echo = ''] = out.split('\n');
    expect(echo).toMatch(/^› Is it true and so on .*…$/);
    expect(echo.length).toBeLessThanOrEqual(72);
  });

  it('prints the answer alone with --quiet', async () => {
    expect(await ran(['-q', 'Hi'])).toEqual({ code: 0, out: 'Hello.\n', err: '' });
  });

  it('prints nothing but events with --json', async () => {
    const { code, out, err } = await ran(['--json', 'Hi']);
    const types = out.trimEnd().split('\n').map(typeIn);
    expect([code, err]).toEqual([0, '']);
    expect(types).toEqual([
      'preCall',
      'preReasoning',
      'reasoningChunk',
      'postReasoning',
      'postCall',
    ]);
  });

  it('shows an error for people and for those who mend it, without a stack', async () => {
    const { code, err } = await ran(['Hi'], scriptedModel(failing));
    expect([code, err]).toEqual([
      1,
      '✗ The service did not respond as expected. Please try again.\n  connection: connect ECONNREFUSED\n',
    ]);
  });

  it('shows the stack with DEBUG=millrace', async () => {
    const { err } = await ran(['Hi'], scriptedModel(failing), { env: { DEBUG: 'millrace' } });
    expect(err).toMatch(/\n {2}MillraceError: connect ECONNREFUSED\n {4}at /);
  });

  it('refuses options that it does not have', async () => {
    const { code, out, err } = await ran(['--jsonn']);
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(/Did you mean --json\?/);
  });

  it.each([
    [['rnus'], 'runs'],
    [['rnus', '3f2a', '--json'], 'runs'],
    [['-q', 'resme', 'last'], 'resume'],
    [['flwo', 'run', 'a.json'], 'flow'],
    [['help', 'devtool'], 'devtools'],
    [['--json', 'servr', '--port', '0'], 'serve'],
  ])('asks no model for a misspelled command: %j', async (argv, meant) => {
    const asked: unknown[] = [];
    const model = scriptedModel((request) => {
      asked.push(request);
      return [text('Hello.')];
    });
    const { code, out, err } = await ran(argv, model);
    expect([code, out, asked]).toEqual([2, '', []]);
    expect(err).toContain(`\n(Did you mean ${meant}?)\n`);
  });

  it.each([
    [['ask', 'rnus'], '1: rnus'],
    [['--', 'rnus'], '1: rnus'],
    [['Rnus'], '1: Rnus'],
    [['hello'], '1: hello'],
    [['run', 'the', 'numbers'], '1: run the numbers'],
  ])('asks %j as a question', async (argv, answered) => {
    const [mark = '', ...words] = argv;
    const quiet = mark === 'ask' ? ['ask', '-q', ...words] : ['-q', ...argv];
    expect(await ran(quiet, scriptedModel(echoed))).toEqual({
      code: 0,
      out: `${answered}\n`,
      err: '',
    });
  });

  it('asks for the model that is named, by an option before a variable', async () => {
    const asked: (string | undefined)[] = [];
    const choice: ModelChoice = {
      variables: [],
      factory: ({ name }) => {
        asked.push(name);
        return Promise.resolve({ model: hello(), about: 'a model', unit: 'tokens' });
      },
    };
    for (const argv of [['Hi'], ['--model', 'big', 'Hi']]) {
      const env = { MILLRACE_MODEL: 'small' };
      await main(fakeEnvironment(argv, { env, models: [choice] }).environment);
    }
    await main(fakeEnvironment(['Hi'], { models: [choice] }).environment);
    expect(asked).toEqual(['small', 'big', undefined]);
  });

  it('ends quietly when the reader of its output leaves', async () => {
    const { environment, out, err } = fakeEnvironment(['Hi'], { models: [choiceOf(endless())] });
    const left = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    out.stream.write = () => {
      queueMicrotask(() => out.stream.emit('error', left));
      return true;
    };
    expect([await main(environment), err.text()]).toEqual([0, '']);
  });

  it('keeps the partial answer at the first Ctrl-C', async () => {
    const interrupt$ = new Subject<void>();
    const model = scriptedModel(() => {
      queueMicrotask(() => interrupt$.next());
      return concat(of(text('Half an answer')), NEVER);
    });
    const { code, out } = await ran(['Hi'], model, { interrupt$ });
    expect([code, interrupt$.observed]).toEqual([130, false]);
    expect(out).toMatch(/\nHalf an answer\n\ninterrupted after /);
  });
});

describe('millrace in a terminal', () => {
  /** Answers each prompt with the next of these key strokes. */
  const chatted = (model: Model, ...typed: readonly string[]) => chattedIn([], model, ...typed);
  const chattedIn = async (argv: readonly string[], model: Model, ...typed: readonly string[]) => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    const rest = [...typed];
    const out = fakeOutput((written) => {
      if (written === '› ') queueMicrotask(() => stdin.write(rest.shift() ?? ''));
    });
    const { environment, err } = fakeEnvironment(argv, {
      stdin,
      stdout: Object.assign(out.stream, { isTTY: true, columns: 40 }),
      env: { NO_COLOR: '1' },
      models: [choiceOf(model)],
    });
    const code = await main(environment);
    return { code, out: out.text(), err: err.text() };
  };

  const narrow = async (argv: readonly string[], model: Model) => {
    const out = fakeOutput();
    const err = fakeOutput();
    const { environment } = fakeEnvironment(argv, {
      stdout: Object.assign(out.stream, { isTTY: true, columns: 40 }),
      stderr: Object.assign(err.stream, { isTTY: true, columns: 40 }),
      env: { NO_COLOR: '1', MILLRACE_STORE: 'none' },
      models: [choiceOf(model)],
    });
    const code = await main(environment);
    return { code, out: out.text(), err: err.text() };
  };
  const widest = (written: string) =>
    Math.max(...written.split('\n').map((line) => Array.from(line).length));
  const sentence = 'Backpressure reaches the socket of the provider when the reader is slow.';

  it('wraps the answer between words while it streams', async () => {
    const pieces = Array.from(sentence, (letter) => text(letter));
    const { out } = await narrow(['How?'], scriptedModel(pieces));
    expect(out).toContain(
      '\nBackpressure reaches the socket of the\nprovider when the reader is slow.\n',
    );
    expect(out).toMatch(/\nanswered in .*\n.* 0 out\n\nreasoning/);
    expect(widest(out)).toBeLessThanOrEqual(40);
    expect((await narrow(['-q', 'How?'], scriptedModel(pieces))).out).toBe(
      'Backpressure reaches the socket of the\nprovider when the reader is slow.\n',
    );
  });

  it('wraps errors, and nothing that is not for a terminal', async () => {
    const fails = () => {
      throw new MillraceError('config', sentence);
    };
    const { err } = await narrow(['Hi'], scriptedModel(fails));
    expect(err).toBe(
      '✗ Backpressure reaches the socket of the\nprovider when the reader is slow.\n  config\n',
    );
    expect((await ran(['Hi'], scriptedModel(fails))).err).toBe(`✗ ${sentence}\n  config\n`);
    const { out } = await narrow(['--json', 'How?'], scriptedModel([text(sentence)]));
    expect(out.trimEnd().split('\n').map(typeIn)).toContain('postCall');
    expect((await ran(['-q', 'How?'], scriptedModel([text(sentence)]))).out).toBe(`${sentence}\n`);
  });

  it.each(['--help', 'runs', 'fork', 'flow run', 'serve'])('fits its help: %s', async (command) => {
    const argv = command.startsWith('-') ? [command] : [...command.split(' '), '--help'];
    const { out } = await narrow(argv, hello());
    // Command lines stay whole: readers copy them.
    const prose = out.split('\n').filter((line) => !/^Usage:|^ +(?:\$|-)/.test(line));
    expect(widest(prose.join('\n'))).toBeLessThanOrEqual(40);
    const words = (given: string) => given.split(/\s+/).filter((word) => word !== '');
    expect(words(out)).toEqual(words((await ran(argv)).out));
  });

  it('asks for questions, and remembers', async () => {
    const { code, out } = await chatted(scriptedModel(echoed, echoed), 'one\r', 'two\r', '\r');
    expect(code).toBe(0);
    expect(out).toMatch(/\n1: one\n[^]*\n3: two\n/);
    expect(out).toContain('Ask a question. An empty line ends the\nchat.\n');
    expect(out.match(/Millrace, with/g)).toHaveLength(1);
  });

  it('S7: names the session that it continues, and continues it', async () => {
    const store = await mkdtemp(join(tmpdir(), 'millrace-chat-'));
    const argv = ['--store', store];
    const first = await chattedIn(argv, scriptedModel(echoed), 'one\r', '\r');
    const [, session = ''] =
      /Continue this conversation:\s+npx @millrace\/cli (--session .*)\n$/.exec(first.out) ?? [];
    const [, name = ''] = session.split(' ');
    const again = [...argv, '--session', name];
    expect((await chattedIn(again, scriptedModel(echoed), 'two\r', '\r')).out).toContain(
      '\n3: two\n',
    );
    await rm(store, { recursive: true });
  });

  it('S10: continues after an error, with the question kept', async () => {
    const { code, out, err } = await chatted(
      scriptedModel(failing, echoed),
      'a\r',
      'b\r',
      'exit\r',
    );
    expect([code, err]).toEqual([0, expect.stringMatching(/ECONNREFUSED/)]);
    expect(out).toMatch(/\n2: b\n/);
  });

  it.each([
    ['Ctrl-D', '\u0004', 0],
    ['Ctrl-C', '\u0003', 130],
  ])('ends with %s', async (_name, key, code) => {
    expect(await chatted(hello(), key)).toMatchObject({ code, err: '' });
  });

  it('does not chat where its output is for a program', async () => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    const { code, out, err } = await ran(['--json'], hello(), { stdin });
    expect([code, out, err]).toEqual([2, '', expect.stringMatching(/pass a question/)]);
  });
});

const typeIn = (line: string): unknown => Reflect.get(Object(JSON.parse(line)), 'type');
