import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import {
  type CallInfo,
  createAgent,
  inProcessMemory,
  type Model,
  type ModelRequest,
  only,
  textOf,
  tool,
} from 'millrace';
import { guardResults } from 'millrace/guards';
import { createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { isPlan } from 'millrace/planning';
import { sessions } from 'millrace/sessions';
import {
  layerContract,
  marbles,
  record,
  type ScriptedAnswer,
  scriptedModel,
  text,
  toolCall,
  toolContract,
} from 'millrace/testing';
import { firstValueFrom, lastValueFrom, map, NEVER, of } from 'rxjs';
import { filesOnDisk } from './disk/index.js';
import { deepAgent, type FileSystem, fileSystem, filesInMemory, taskTool } from './index.js';
import { toolsFor } from './file-tools.js';

const directory = mkdtempSync(join(tmpdir(), 'deep-agent-'));
afterAll(() => rmSync(directory, { recursive: true }));

const read = (files: FileSystem, path: string) => lastValueFrom(files.read$(path));
const list = (files: FileSystem) => lastValueFrom(files.list$());
const write = (path: string, content: string, id?: string) =>
  toolCall('write_file', { path, content }, id);
const task = (agent: string, words: string, id?: string) =>
  toolCall('task', { agent, task: words }, id);

/** A model that answers each agent by its own script: the first message of a request names the agent. */
const resultsOf = (request: ModelRequest | undefined): readonly string[] =>
  (request?.messages ?? []).flatMap((message) =>
    message.role === 'tool' ? message.content.map((result) => textOf(result)) : [],
  );
const byQuestion = (scripts: Readonly<Record<string, Model>>): Model => ({
  name: 'scripts',
  stream$: (request, context) => {
    const [first] = request.messages;
    const words = first === undefined ? '' : textOf(first);
    const found = Object.entries(scripts).find(([name]) => words.includes(name));
    if (found === undefined) throw new Error(`No script for '${words}'.`);
    return found[1].stream$(request, context);
  },
});

describe('T25: a deep agent', () => {
  it('keeps a plan, works with files, and gives tasks to sub-agents that share them', async () => {
    const files = filesInMemory();
    const main = scriptedModel(
      [toolCall('create_plan', { goal: 'Report.', steps: ['Research', 'Write'] })],
      [task('general', 'research rye'), task('general', 'research wheat')],
      [toolCall('read_file', { path: 'rye.md' }), toolCall('list_files')],
      [toolCall('edit_file', { path: 'rye.md', oldText: '120', newText: '130' })],
      [text('Done.')],
    );
    const rye = scriptedModel([write('rye.md', 'rye: 120 kg')], [text('In rye.md.')]);
    const wheat = scriptedModel([write('wheat.md', 'wheat: 0 kg')], [text('In wheat.md.')]);
    const model = byQuestion({ Compare: main, rye, wheat });
    const agent = deepAgent({ name: 'deep', model, files });
    const plans: unknown[] = [];
    agent.events$.pipe(only('stateChanged')).subscribe(({ state }) => plans.push(state));
    await record(agent.stream$('Compare.'));
    expect(resultsOf(main.requests[2])).toEqual([
      expect.stringContaining('To be done: 2'),
      'In rye.md.',
      'In wheat.md.',
    ]);
    expect(resultsOf(main.requests[3]).slice(3)).toEqual(['rye: 120 kg', 'rye.md\nwheat.md']);
    expect(await read(files, 'rye.md')).toBe('rye: 130 kg');
    expect(plans.every(isPlan)).toBe(true);
    // A sub-agent sees its task, and nothing of the conversation.
    expect(rye.requests[0]?.messages.map(textOf)).toEqual(['research rye']);
    const toolsOf = ({ requests }: typeof main) =>
      requests[0]?.tools?.map(({ name }) => name) ?? [];
    expect(toolsOf(main)).toEqual(expect.arrayContaining(['task', 'create_plan', 'write_file']));
    expect(toolsOf(rye)).not.toContain('task');
    expect(toolsOf(rye)).toEqual(expect.arrayContaining(['create_plan', 'write_file']));
    [main, rye, wheat].forEach((it) => it.verify());
  });

  it('loses nothing if two sub-agents change one file', async () => {
    const files = filesInMemory();
    await lastValueFrom(files.write$('log', 'a\nb', 'k'));
    const edit = (oldText: string) =>
      scriptedModel(
        [toolCall('edit_file', { path: 'log', oldText, newText: oldText.toUpperCase() })],
        [text('Done.')],
      );
    const main = scriptedModel([task('general', 'one'), task('general', 'two')], [text('Done.')]);
    const model = byQuestion({ Go: main, one: edit('a'), two: edit('b') });
    await deepAgent({ model, files }).call('Go.');
    expect(await read(files, 'log')).toBe('A\nB');
  });

  it('lets no agent leave the directory', async () => {
    const root = join(directory, 'root');
    mkdirSync(root);
    const sub = scriptedModel([write('../outside.md', 'x'), write('/etc/x', 'x')], [text('Ok.')]);
    const main = scriptedModel([task('general', 'sub')], [text('Done.')]);
    const files = filesOnDisk(root);
    await deepAgent({ model: byQuestion({ Go: main, sub }), files }).call('Go.');
    expect(resultsOf(sub.requests[1])).toEqual([
      expect.stringContaining("leaves the root directory by '..'"),
      'Written: etc/x',
    ]);
    expect(existsSync(join(directory, 'outside.md'))).toBe(false);
    expect(readFileSync(join(root, 'etc/x'), 'utf8')).toBe('x');
  });

  it('has sub-agents of its own kind, finished ones, and skills', async () => {
    const finished = createAgent({ name: 'x', model: scriptedModel([text('I am finished.')]) });
    const critic = scriptedModel([text('Weak.')]);
    const model = scriptedModel(
      [task('critic', 'Judge.'), task('done', 'Go.'), task('nobody', 'Go.')],
      [text('Done.')],
    );
    const refunds = { name: 'refunds', description: 'How to refund.', instructions: 'Ask.' };
    const agent = deepAgent({
      model,
      skills: [refunds],
      agents: [
        { name: 'critic', description: 'Judges.', model: critic, instructions: 'Be strict.' },
        { name: 'done', description: 'Is done.', agent: finished },
      ],
    });
    await agent.call('Go.');
    expect(resultsOf(model.requests[1])).toEqual([
      'Weak.',
      'I am finished.',
      expect.stringContaining('agent'),
    ]);
    expect(critic.requests[0]?.system).toContain('Be strict.');
    expect(model.requests[0]?.system).toContain('- refunds: How to refund.');
    expect(critic.requests[0]?.system).not.toContain('refunds');
  });

  it('keeps the files of users apart, if they are by session', async () => {
    const memory = inProcessMemory();
    const model = scriptedModel(
      ...['ada', 'bob'].flatMap((name) => [
        [task('general', name)],
        [write('me.md', name)],
        [text('Ok.')],
        [text('Ok.')],
      ]),
    );
    const ofSession = (id = 'none') => filesInMemory({ memory, id });
    const depths = new Set<number>();
    const files = ({ agent: names, sessionId }: CallInfo) => {
      depths.add(names.length);
      return ofSession(sessionId);
    };
    const agent = deepAgent({ model, files });
    for (const id of ['ada', 'bob']) await sessions(agent).open(id).call('Go.');
    expect(await read(ofSession('ada'), 'me.md')).toBe('ada');
    expect(await read(ofSession('bob'), 'me.md')).toBe('bob');
    expect(await list(ofSession())).toEqual([]);
    // It is asked for the root call, also by sub-agents.
    expect([...depths]).toEqual([1]);
  });

  it.each(['session', 'call'])('keeps the files of each %s apart by default', async (owner) => {
    const secret = tool({
      name: 'mail',
      description: 'Mail.',
      run: () => `ADA ${'x'.repeat(20_000)}`,
    });
    const look = toolCall('search_files', { query: 'ADA' });
    const sub = scriptedModel([look], [text('Ok.')]);
    const main = scriptedModel(
      [toolCall('mail'), write('a.md', 'ADA')],
      [task('general', 'sub')],
      [text('Ok.')],
      [look],
      [text('Ok.')],
    );
    const model = byQuestion({ Go: main, sub });
    const agent = deepAgent({ model, tools: [secret] });
    const chats = sessions(agent);
    const callOf = (id: string) =>
      owner === 'session' ? chats.open(id).call('Go.') : agent.call('Go.');
    await callOf('ada');
    // The sub-agent shares them.
    expect(resultsOf(sub.requests[1])[0]).toContain('a.md:1: ADA');
    await callOf('bob');
    expect(resultsOf(main.requests[4])).toEqual(["No line has 'ADA'."]);
  });

  it('has the files of a session again in its next call, until 100 others came', async () => {
    const listed: unknown[] = [];
    const model = scriptedModel(
      [write('a.md', 'x')],
      [text('Ok.')],
      ...Array.from({ length: 102 }, () => [[toolCall('list_files')], [text('Ok.')]]).flat(),
    );
    const agent = deepAgent({ model });
    const chats = sessions(agent);
    const list = async (id: string) => {
      const { toolCalls } = await chats.open(id).call('Go.');
      listed.push(toolCalls.at(-1)?.output);
    };
    await chats.open('ada').call('Go.');
    await list('ada');
    for (let n = 0; n < 100; n += 1) await list(`other ${n}`);
    await list('ada');
    expect([listed[0], listed.at(-1)]).toEqual(['a.md', 'There are no files.']);
  });

  it('asks once for the files of a call and its sub-agents, so that their writes wait for each other', async () => {
    let count = 0;
    const make = () => {
      count += 1;
      return filesInMemory();
    };
    const sub = scriptedModel([write('a', 'x')], [text('Ok.')]);
    const main = scriptedModel([task('general', 'sub')], [toolCall('list_files')], [text('Ok.')]);
    const agent = deepAgent({ model: byQuestion({ Go: main, sub }), files: make });
    await agent.call('Go.');
    expect([count, resultsOf(main.requests[2]).at(-1)]).toEqual([1, 'a']);
  });

  it.each([undefined, { maxToolErrors: 5 }, { maxIterations: undefined }])(
    'has 50 iterations in a sub-agent with the limits %j',
    async (limits) => {
      const steps = Array.from({ length: 60 }, () => [toolCall('list_files')]);
      const sub = scriptedModel(...steps, [text('Ok.')]);
      const model = scriptedModel([task('w', 'x')], [text('Ok.')]);
      const worker = { name: 'w', description: 'Works.', model: sub, ...(limits && { limits }) };
      await deepAgent({ model, agents: [worker] } as never).call('Go.');
      // And one to close.
      expect(sub.requests).toHaveLength(51);
    },
  );

  const finished = createAgent({ name: 'x', model: scriptedModel() });

  it.each([
    [
      { agents: [{ name: 'x', description: 'x', agent: finished, limits: {}, tols: [] }] },
      "the sub-agent 'x' has an 'agent', which would ignore: limits, tols",
    ],
    [{ agents: [{ name: 'x', description: 'x', agent: {} }] }, "'agent' must be an agent"],
    [{ agents: [{ name: 'x', description: 'x', tols: [] }] }, "no option 'tols'"],
    [{ files: {} }, "'files' must be a file system"],
    [{ agents: [{ name: 'x' }] }, "'agents' must be a list"],
    [{ agents: [{ name: 'general', description: 'x' }] }, 'different names'],
    [{ offloadAbove: 1 }, "'offloadAbove'"],
    [{ colour: 1 }, "no option 'colour'"],
  ])('refuses %j', (options, message) => {
    expect(() => deepAgent({ model: scriptedModel(), ...options } as never)).toThrow(message);
  });
});

describe('T25: the file system layer', () => {
  for (const { name, run } of layerContract(() => fileSystem(filesInMemory()))) it(name, run);

  it.each([
    ['nothing', () => undefined],
    ['a promise', () => Promise.resolve(filesInMemory())],
    ['another object', () => ({})],
  ])('refuses a function that returns %s, before the model is asked', async (_, files) => {
    const model = scriptedModel();
    // @ts-expect-error: programs in JavaScript return anything
    const called = createAgent({ model, use: [fileSystem(files)] }).call('x');
    await expect(called).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining('must return a file system, such as filesInMemory()'),
    });
    expect(model.requests).toEqual([]);
  });

  const whole = `first\n${'x'.repeat(30_000)}\nlast`;
  const search = tool({ name: 'search', description: 'Searches.', run: () => whole });

  it.each(['../../x', '/etc/passwd', 'a/b', 'a_b', '', 'ü'.repeat(500), 'call_1', '..'])(
    'moves a large result with any id to a file: %j',
    async (id) => {
      const files = filesInMemory();
      const model = scriptedModel([toolCall('search', {}, id)], [text('Done.')]);
      const agent = createAgent({ model, tools: [search], use: [fileSystem(files)] });
      const { callId } = (await record(agent.stream$('x')))[0] ?? {};
      const [shown = ''] = resultsOf(model.requests[1]);
      const [path = ''] = await list(files);
      expect(path).toMatch(/^results\/[\w-]{1,80}\/[\w-]{1,80}\.txt$/u);
      expect(path.startsWith(`results/${callId}/`)).toBe(true);
      expect(await read(files, path)).toBe(whole);
      expect(shown.length).toBeLessThan(1_500);
      expect(shown).toContain(`the file ${path}: 30011 characters, 3 lines`);
      expect(shown).toContain('first\nxxx');
    },
  );

  it('reads a moved result in parts, and finds lines in it', async () => {
    const files = filesInMemory();
    const path = 'results/c/a.txt';
    const model = scriptedModel(
      [toolCall('search', {}, 'a')],
      [toolCall('read_file', { path, fromLine: 2, fromCharacter: 25_000 })],
      [toolCall('search_files', { query: 'last', directory: 'results' })],
      [toolCall('search_files', { query: 'x', directory: path })],
      [toolCall('read_file', { path: 'results/c/b.txt' })],
      [text('Done.')],
    );
    const agent = createAgent({ model, tools: [search], use: [fileSystem(files)] });
    await agent.call('x', { callId: 'c' });
    const results = resultsOf(model.requests[5]).slice(1);
    expect(results).toEqual([
      `${'x'.repeat(5_000)}\n\n[Characters 25000 to 30000 of 30000 of line 2.]`,
      `${path}:3: last`,
      `${path}:2: ${'x'.repeat(200)}`,
      expect.stringContaining(`There is no file 'results/c/b.txt'. There are: ${path}.`),
    ]);
  });

  it('keeps a result that cannot be moved, with the reason', async () => {
    const files = filesInMemory({ maxBytes: 100 });
    const model = scriptedModel([toolCall('search', {}, 'a')], [text('Done.')]);
    const agent = createAgent({ model, tools: [search], use: [fileSystem(files)] });
    await agent.call('x');
    expect(resultsOf(model.requests[1])[0]).toMatch(
      /^\[It could not be moved[^]*limit is 100[^]*x/u,
    );
  });

  it('moves a result after its guards have seen all of it', async () => {
    const seen: number[] = [];
    const files = filesInMemory();
    const model = scriptedModel([toolCall('search', {}, 'a')], [text('Done.')]);
    const guard = guardResults(({ text: all }) => {
      seen.push(all.length);
      return false;
    });
    const agent = createAgent({ model, tools: [search], use: [fileSystem(files), guard] });
    await agent.call('x');
    expect(seen).toEqual([whole.length]);
    expect(await list(files)).toEqual([]);
  });
});

describe('T25: a file system in the middle of something', () => {
  it('has what was written before a crash; the resumed call repeats no step', async () => {
    const memory = inProcessMemory();
    const store = createCallStore(inProcessCalls());
    const counts = { search: 0, requests: 0 };
    const search = tool({
      name: 'search',
      description: 'Searches.',
      run: () => `${(counts.search += 1)} ${'x'.repeat(20_000)}`,
    });
    const stuck = tool({
      name: 'stuck',
      description: 'Waits.',
      idempotent: true,
      run: () => waits(),
    });
    let waits = () => NEVER as unknown;
    const make = (...answers: readonly ScriptedAnswer[]) => {
      const durable = journal(store);
      const model = scriptedModel(...answers);
      const files = filesInMemory({ memory });
      return {
        durable,
        model,
        files,
        agent: deepAgent({ model, tools: [search, stuck], files, use: [durable] }),
      };
    };
    const first = make(
      [toolCall('create_plan', { goal: 'G.', steps: ['one', 'two'] })],
      [write('a.md', 'one'), toolCall('search', {}, 's')],
      [toolCall('edit_file', { path: 'a.md', oldText: 'one', newText: 'oneone' })],
      [toolCall('stuck')],
    );
    await new Promise<void>((resolve) => {
      const run = first.agent.stream$('Go.', { callId: 'c' }).subscribe((event) => {
        if (event.type !== 'preActing' || event.toolCall.name !== 'stuck') return;
        setImmediate(() => {
          run.unsubscribe();
          resolve();
        });
      });
    });
    waits = () => 'free';
    const second = make([toolCall('update_step', { step: 1, status: 'done' })], [text('Done.')]);
    const reply = await second.durable.resume(second.agent, 'c');
    expect(reply.text).toBe('Done.');
    expect(counts.search).toBe(1);
    expect(second.model.requests).toHaveLength(2);
    expect(await read(second.files, 'a.md')).toBe('oneone');
    expect(await list(second.files)).toEqual(['a.md', 'results/c/s.txt']);
    const last = second.model.requests[1];
    expect(last?.messages.map(textOf).join('\n')).toContain('1. [done] one\n2. [todo] two');
  });

  it('edits once, if a crash came between an edit and its record', async () => {
    const files = filesInMemory();
    const [, , , , edit] = toolsFor(files, 10_000);
    await lastValueFrom(files.write$('a', 'one', 'k'));
    const input = { path: 'a', oldText: 'one', newText: 'oneone' };
    const { lentToolContext } = await import('millrace/testing');
    for (const _ of [1, 2]) await lastValueFrom(edit?.run$(input, lentToolContext()) ?? NEVER);
    expect(await read(files, 'a')).toBe('oneone');
    expect(edit?.idempotent).toBe(true);
    // On disk, nobody knows whether a write has happened: again, it could replace a newer one.
    const onDisk = toolsFor(filesOnDisk(directory), 500);
    expect([onDisk[3], onDisk[4]].map((it) => it?.idempotent)).toEqual([false, false]);
  });

  it('is unsubscribed in the same tick as the call, in a sub-agent too', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const never$ = cold<string>('----------');
      const files: FileSystem = {
        list$: () => of([]),
        read$: () => never$,
        write$: () => NEVER,
      };
      const sub = scriptedModel([toolCall('read_file', { path: 'a' })]);
      const main = scriptedModel([task('general', 'sub')]);
      const agent = deepAgent({ model: byQuestion({ Go: main, sub }), files });
      const reply$ = agent.call$('Go.', { scheduler }).pipe(map(textOf));
      expectObservable(reply$, '^---!').toBe('-----');
      expectSubscriptions(never$.subscriptions).toBe('^---!');
    });
  });
});

describe('the tools', () => {
  const byName = (name: string) => {
    const files = filesInMemory();
    files.write$('a', 'a', 'k').subscribe();
    const found = toolsFor(files, 10_000).find((it) => it.name === name);
    if (found === undefined) throw new Error(name);
    return found;
  };
  const samples = {
    list_files: { valid: [{}, { directory: 'a' }], invalid: [{ directory: {} }] },
    read_file: { valid: [{ path: 'a' }, { path: 'a', fromLine: 2 }], invalid: [{}, { path: '' }] },
    search_files: { valid: [{ query: 'a' }], invalid: [{}, { query: '' }] },
    write_file: { valid: [{ path: 'a', content: '' }], invalid: [{ path: 'a' }] },
    edit_file: {
      valid: [{ path: 'a', oldText: 'a', newText: '' }],
      invalid: [{ path: 'a', oldText: '', newText: '' }],
    },
  };
  describe.each(Object.entries(samples))('%s', (name, given) => {
    for (const { name: title, run } of toolContract(() => byName(name), given)) it(title, run);
  });

  it('task needs agents with different names', () => {
    const agent = createAgent({ model: scriptedModel() });
    const one = { name: 'a', description: 'A.', agent };
    expect(() => taskTool([])).toThrow('a list of agents');
    expect(() => taskTool([one, one])).toThrow('different names');
    expect(taskTool([one]).description).toContain('- a: A.');
  });

  it('edit_file explains what is wrong, and changes nothing', async () => {
    const files = filesInMemory();
    await lastValueFrom(files.write$('a', 'x x', 'k'));
    const edits = [
      { path: 'none', oldText: 'x', newText: 'y' },
      { path: 'a', oldText: 'z', newText: 'y' },
      { path: 'a', oldText: 'x', newText: 'y' },
      { path: 'a', oldText: 'x', newText: 'y', all: true },
    ];
    const model = scriptedModel(...edits.map((it) => [toolCall('edit_file', it)]), [text('.')]);
    await createAgent({ model, use: [fileSystem(files)] }).call('x');
    expect(resultsOf(model.requests[4])).toEqual([
      expect.stringContaining('There is no such file. Create it with write_file.'),
      expect.stringContaining('does not contain the old text'),
      expect.stringContaining('2 times'),
      'Changed: a',
    ]);
    expect(await firstValueFrom(files.read$('a'))).toBe('y y');
  });
});
