import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type Message, type Model, textOf, tool } from 'millrace';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { firstValueFrom } from 'rxjs';
import { filesOnDisk } from './disk/index.js';
import { deepAgent, filesInMemory } from './index.js';
import { badPaths } from './testing/file-system-contract.js';

const outside = mkdtempSync(join(tmpdir(), 'deep-hostile-'));
afterAll(() => rmSync(outside, { recursive: true }));
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(outside, 'root-'));
});

const resultsIn = (messages: readonly Message[] = []) =>
  messages.flatMap((message) => (message.role === 'tool' ? message.content : []));

/** Each agent has a script, by the first word of its question. */
const byQuestion = (scripts: Readonly<Record<string, readonly ScriptedAnswer[]>>) => {
  const models = Object.fromEntries(
    Object.entries(scripts).map(([word, script]) => [word, scriptedModel(...script)]),
  );
  const model: Model = {
    name: 'scripts',
    stream$: (request, context) => {
      const [question] = request.messages;
      const found = models[question === undefined ? '' : textOf(question)];
      if (found === undefined) throw new Error('No script.');
      return found.stream$(request, context);
    },
  };
  return { model, models };
};

const task = (words: string) => toolCall('task', { agent: 'general', task: words }, words);

describe('T25: a hostile model of a deep agent', () => {
  it('reaches nothing outside of the files with any path, by any tool', async () => {
    writeFileSync(join(outside, 'x'), 'secret');
    mkdirSync(join(root, 'a'));
    writeFileSync(join(root, 'a', 'own.md'), 'ours');
    const before = readdirSync(outside).sort();
    const uses = badPaths.flatMap((path) => [
      toolCall('write_file', { path, content: 'x' }),
      toolCall('edit_file', { path, oldText: 'secret', newText: 'x' }),
      toolCall('read_file', { path }),
      toolCall('list_files', { directory: path }),
      toolCall('search_files', { query: 'secret', directory: path }),
    ]);
    const model = scriptedModel(uses, [text('Done.')]);
    await deepAgent({ model, files: filesOnDisk(root) }).call('Go.');
    const results = resultsIn(model.requests[1]?.messages);
    expect(results).toHaveLength(uses.length);
    const changes = results.filter((_, index) => index % 5 < 3);
    expect(changes.every(({ isError }) => isError)).toBe(true);
    expect(results.map((it) => textOf(it)).join('\n')).not.toMatch(/:\d+: secret/u);
    expect(readFileSync(join(outside, 'x'), 'utf8')).toBe('secret');
    expect(readdirSync(outside).sort()).toEqual(before);
    expect(readdirSync(root)).toEqual(['a']);
  });

  it('writes no secrets and no hooks of Git, in upper case neither', async () => {
    const paths = ['.git/hooks/post-commit', '.GIT/hooks/x', '.ENV', 'a/.Ssh/id_rsa'];
    const uses = paths.map((path) => toolCall('write_file', { path, content: 'x' }));
    const model = scriptedModel(uses, [text('Done.')]);
    await deepAgent({ model, files: filesOnDisk(root) }).call('Go.');
    for (const result of resultsIn(model.requests[1]?.messages)) {
      expect(textOf(result)).toContain('looks like a secret');
    }
    expect(readdirSync(root)).toEqual([]);
  });

  it('loses nothing if two sub-agents change one file on disk in the same moment', async () => {
    writeFileSync(join(root, 'log'), 'a\nb');
    const edit = (oldText: string): readonly ScriptedAnswer[] => [
      [toolCall('edit_file', { path: 'log', oldText, newText: oldText.toUpperCase() })],
      [text('Done.')],
    ];
    const { model } = byQuestion({
      Go: [[task('one'), task('two')], [text('Done.')]],
      one: edit('a'),
      two: edit('b'),
    });
    await deepAgent({ model, files: filesOnDisk(root) }).call('Go');
    expect(readFileSync(join(root, 'log'), 'utf8')).toBe('A\nB');
  });

  it('changes no plan but its own in a sub-agent', async () => {
    const { model, models } = byQuestion({
      Go: [
        [toolCall('create_plan', { goal: 'Ours.', steps: ['one'] })],
        [task('sub')],
        [text('Done.')],
      ],
      sub: [
        [toolCall('update_step', { step: 1, status: 'abandoned', outcome: 'Mine.' })],
        [toolCall('create_plan', { goal: 'Mine.', steps: ['x', 'y'] })],
        [toolCall('revise_plan', { steps: ['z'] })],
        [text('Ok.')],
      ],
    });
    await deepAgent({ model }).call('Go');
    const shown = models['Go']?.requests[2]?.messages.map(textOf).join('\n') ?? '';
    expect(shown).toContain('Goal: Ours.\n1. [todo] one');
    expect(shown).not.toContain('Mine.');
    expect(resultsIn(models['sub']?.requests[1]?.messages)[0]?.isError).toBe(true);
  });

  it('continues after a result that is too large for any file, with its beginning and the reason', async () => {
    const huge = tool({ name: 'huge', description: 'Huge.', run: () => 'x\n'.repeat(10_000_000) });
    const files = filesInMemory();
    const model = scriptedModel([toolCall('huge')], [text('Done.')]);
    expect((await deepAgent({ model, files, tools: [huge] }).call('Go.')).text).toBe('Done.');
    const [result] = resultsIn(model.requests[1]?.messages);
    const shown = result === undefined ? '' : textOf(result);
    expect(shown).toMatch(/^\[It could not be moved to a file: .* 20000000 bytes/u);
    expect(shown.length).toBeLessThan(20_000);
    expect(await firstValueFrom(files.list$())).toEqual([]);
  });
});
