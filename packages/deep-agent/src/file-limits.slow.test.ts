import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import {
  createAgent,
  inProcessMemory,
  isMillraceError,
  type Memory,
  type Message,
  textOf,
  tool,
} from 'millrace';
import { inProcessLongTermMemory, withLongTermMemory } from 'millrace/long-term-memory';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { openFiles } from '@millrace/store';
import { searchTools } from '@millrace/tools';
import fc from 'fast-check';
import type { ConfinedFiles } from '@millrace/tools/files';
import {
  concat,
  EMPTY,
  firstValueFrom,
  forkJoin,
  lastValueFrom,
  materialize,
  NEVER,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import { filesIn, sizesIn } from './disk/files-on-disk.js';
import { filesOnDisk } from './disk/index.js';
import { deepAgent, type FileSystem, fileSystem, filesInMemory } from './index.js';

const directory = mkdtempSync(join(tmpdir(), 'deep-limits-'));
const store = openFiles(join(directory, 'store'));
afterAll(async () => {
  await lastValueFrom(store.close$(), { defaultValue: undefined });
  rmSync(directory, { recursive: true });
});

const limits = { maxBytes: 40, maxTotalBytes: 100 };
let count = 0;
const nextId = () => `files ${(count += 1)}`;
const newDirectory = () => mkdtempSync(join(directory, 'root-'));
/** A memory without branches keeps all versions. */
const line = (memory: Memory): Memory => ({
  load$: () => memory.load$(),
  append$: (messages) => memory.append$(messages),
});

const systems: Readonly<Record<string, () => FileSystem>> = {
  'in this process': () => filesInMemory(limits),
  'in a store of files': () => filesInMemory({ ...limits, memory: store.memory, id: nextId() }),
  'in a memory that keeps all versions': () => {
    const memory = inProcessMemory();
    return filesInMemory({ ...limits, memory: (id) => line(memory(id)) });
  },
  'on disk': () => filesOnDisk(newDirectory(), limits),
};

/** Writes as a model would, and returns the error, if there is one. */
const written = async (files: FileSystem, path: string, content: string): Promise<unknown> => {
  try {
    await lastValueFrom(files.write$(path, content, `${(count += 1)}`));
    return undefined;
  } catch (error) {
    return error;
  }
};

const shownIn = (message: Message): string =>
  message.role === 'tool' ? message.content.map((result) => textOf(result)).join() : '';

const totalOf = async (files: FileSystem): Promise<number> => {
  const paths = await firstValueFrom(files.list$());
  const texts = await Promise.all(paths.map((path) => firstValueFrom(files.read$(path))));
  return Buffer.byteLength(texts.join(''));
};

describe.each(Object.entries(systems))('T25: what a model can write %s', (name, create) => {
  const write = fc.record({
    path: fc.constantFrom('a', 'b', 'c/d', 'e', 'f'),
    content: fc
      .tuple(fc.constantFrom('x', '\u00fc', '\u{1f375}'), fc.integer({ min: 0, max: 45 }))
      .map(([character, length]) => character.repeat(Math.ceil(length / character.length))),
  });

  it('is bounded, for any writes, and each refusal names the limit', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(write, { minLength: 5, maxLength: 15 }), async (writes) => {
        const files = create();
        for (const { path, content } of writes) {
          const before = await firstValueFrom(files.read$(path));
          const error = await written(files, path, content);
          const bytes = Buffer.byteLength(content);
          if (error === undefined) {
            expect(bytes).toBeLessThanOrEqual(limits.maxBytes);
            expect(await firstValueFrom(files.read$(path))).toBe(content);
          } else {
            expect(error).toMatchObject({ code: 'tooLarge' });
            const limit = bytes > limits.maxBytes ? limits.maxBytes : limits.maxTotalBytes;
            expect(isMillraceError(error) && error.message).toContain(` ${limit}`);
            expect(await firstValueFrom(files.read$(path))).toBe(before);
          }
          expect(await totalOf(files)).toBeLessThanOrEqual(limits.maxTotalBytes);
        }
      }),
      { numRuns: name.includes('process') ? 100 : 20 },
    );
  });

  it('is bounded for writes at the same time', async () => {
    const files = create();
    const writes = ['a', 'b', 'c', 'd', 'e'].map((path) =>
      files.write$(path, 'x'.repeat(30), path).pipe(materialize(), toArray()),
    );
    const ends = await lastValueFrom(forkJoin(writes));
    expect(ends.filter((end) => end.at(-1)?.kind === 'E')).toHaveLength(2);
    expect(await totalOf(files)).toBe(90);
  });
});

describe('T25: the limit of all files', () => {
  it('frees what a shorter version leaves, and always takes one', async () => {
    const files = filesInMemory({ maxBytes: 100, maxTotalBytes: 100 });
    expect(await written(files, 'a', 'x'.repeat(100))).toBeUndefined();
    expect(await written(files, 'b', 'x')).toMatchObject({ code: 'tooLarge' });
    expect(await written(files, 'a', 'x'.repeat(90))).toBeUndefined();
    expect(await written(files, 'b', 'x'.repeat(10))).toBeUndefined();
    expect(await written(files, 'a', 'y'.repeat(90))).toBeUndefined();
  });

  it('counts all versions in a memory that keeps them', async () => {
    const memory = inProcessMemory();
    const files = filesInMemory({ maxTotalBytes: 100, memory: (id) => line(memory(id)) });
    for (const _ of [1, 2]) expect(await written(files, 'a', 'x'.repeat(50))).toBeUndefined();
    expect(await written(files, 'a', 'x')).toMatchObject({ code: 'tooLarge' });
  });

  it('counts a write once that was lost to another one, and is tried again', async () => {
    const memory = inProcessMemory();
    const kept = (id: string): Memory => {
      const { load$, append$ } = memory(id);
      return { load$: () => load$(), append$: (...given) => append$(...given) };
    };
    const open = () => filesInMemory({ maxTotalBytes: 100, memory: (id) => kept(id) });
    const [files, others] = [open(), open()];
    expect(await written(files, 'a', 'x'.repeat(10))).toBeUndefined();
    // The first attempt of the write loses.
    let attempts = 0;
    const content = (before = ''): string => {
      attempts += 1;
      if (attempts === 1) others.write$('a', 'x', 'other').subscribe();
      return `${before}${'y'.repeat(40 - before.length)}`;
    };
    await lastValueFrom(files.write$('a', content, 'lost'));
    expect(attempts).toBe(2);
    expect(await written(files, 'b', 'x'.repeat(50))).toBeUndefined();
    expect(await written(files, 'c', 'x')).toMatchObject({ code: 'tooLarge' });
  });

  it('loads each file once, though each call has an object of its own', async () => {
    const memory = inProcessMemory();
    let loads: string[] = [];
    const watched = (id: string): Memory => {
      const own = memory(id);
      const load$: Memory['load$'] = (...given) => {
        loads.push(id);
        return own.load$(...given);
      };
      return { ...own, load$ };
    };
    const writtenBy = async (path: string, content: string) => {
      loads = [];
      const files = filesInMemory({ memory: watched, maxTotalBytes: 100 });
      const error = await written(files, path, content);
      return {
        error,
        loaded: loads.filter((id) => id !== 'files/index' && !id.endsWith(`/${path}`)),
      };
    };
    for (const path of ['a', 'b', 'c']) await writtenBy(path, 'x'.repeat(20));
    expect(await writtenBy('d', 'x'.repeat(20))).toEqual({ loaded: ['files/file/c'] });
    expect(await writtenBy('a', 'x'.repeat(30))).toEqual({ loaded: ['files/file/d'] });
    const { error, loaded } = await writtenBy('e', 'x'.repeat(20));
    expect([error, loaded]).toMatchObject([{ code: 'tooLarge' }, ['files/file/a']]);
    // After a refusal, all of them: another process may have made room.
    const all = ['a', 'b', 'c', 'd'].map((path) => `files/file/${path}`);
    expect(await writtenBy('e', 'x'.repeat(10))).toEqual({ loaded: all });
  });

  it('counts what other objects wrote before its first write, and then the files that it writes', async () => {
    const memory = inProcessMemory();
    const open = () => filesInMemory({ memory, maxTotalBytes: 100 });
    expect(await written(open(), 'a', 'x'.repeat(90))).toBeUndefined();
    const files = open();
    expect(await written(files, 'b', 'x'.repeat(11))).toMatchObject({ code: 'tooLarge' });
    expect(await written(open(), 'c', 'x'.repeat(5))).toBeUndefined();
    expect(await written(files, 'b', 'x'.repeat(10))).toBeUndefined();
    expect(await written(open(), 'd', 'x')).toMatchObject({ code: 'tooLarge' });
    expect(await written(open(), 'a', '')).toBeUndefined();
    expect(await written(files, 'd', 'x'.repeat(80))).toMatchObject({ code: 'tooLarge' });
    expect(await written(files, 'a', '')).toBeUndefined();
    expect(await written(files, 'd', 'x'.repeat(80))).toBeUndefined();
  });

  it('counts what was on disk before, and takes no file that is not listed', async () => {
    const root = newDirectory();
    writeFileSync(join(root, 'old'), 'x'.repeat(95));
    const files = filesOnDisk(root, limits);
    expect(await written(files, 'new', 'x'.repeat(6))).toMatchObject({ code: 'tooLarge' });
    expect(await written(files, 'new', 'x'.repeat(5))).toBeUndefined();
    expect(await written(files, 'a/node_modules/x', 'x')).toMatchObject({
      message: expect.stringContaining('node_modules'),
    });
  });

  it('measures each file once: what the next write loads does not grow', async () => {
    const memory = inProcessMemory();
    let rows = 0;
    const files = filesInMemory({
      memory: (id) => {
        const own = memory(id);
        const counted = tap((messages: readonly Message[]) => (rows += 1 + messages.length));
        return { ...own, load$: () => own.load$().pipe(counted) };
      },
    });
    const rowsOf = async (path: string) => {
      rows = 0;
      await written(files, path, 'x');
      return rows;
    };
    await written(files, 'first', 'x');
    const second = await rowsOf('0');
    for (let n = 1; n < 50; n += 1) await written(files, `${n}`, 'x');
    expect(await rowsOf('50')).toBe(second);
  });

  it('lists a directory once, and again after code or a write that failed', async () => {
    let [lists, isFull] = [0, false];
    const confined: ConfinedFiles = {
      root: '/',
      list: () => Promise.resolve([{ path: 'old', stamp: '', bytes: 10 * (lists += 1) }]),
      read: () => Promise.resolve(undefined),
      write: async (_, change) => {
        change(undefined);
        if (isFull) throw new Error('The disk is full.');
        await Promise.resolve();
      },
    };
    const sizes = sizesIn(confined);
    const files = filesIn(confined, { maxTotalBytes: 25 }, sizes);
    for (const path of ['a', 'b', 'c']) await written(files, path, 'x');
    expect(lists).toBe(1);
    sizes.forget();
    expect(await written(files, 'd', 'x'.repeat(6))).toMatchObject({ code: 'tooLarge' });
    expect([await written(files, 'd', 'x'.repeat(5)), lists]).toEqual([undefined, 2]);
    isFull = true;
    expect(await written(files, 'e', '')).toMatchObject({ message: 'The disk is full.' });
    await written(files, 'e', '');
    expect(lists).toBe(3);
  });

  it('has up to 10,000 files', async () => {
    const root = newDirectory();
    for (let n = 0; n < 10_000; n += 1) writeFileSync(join(root, `${n}`), '');
    writeFileSync(join(root, 'z'), 'not listed');
    const files = filesOnDisk(root);
    expect(await written(files, 'new', '')).toMatchObject({
      code: 'tooLarge',
      message: 'There are 10000 files, which is the limit. Write into one of them.',
    });
    expect(await written(files, '5', 'x')).toBeUndefined();
    expect(await written(files, 'z', 'x')).toBeUndefined();
  });

  it('is no error of a write that has happened, and counts one that was left', async () => {
    const memory = inProcessMemory();
    let end: 'completes' | 'hangs' | 'loses its loads' = 'loses its loads';
    let isLost = false;
    const faulty = (id: string): Memory => {
      const own = memory(id);
      if (id !== 'files/file/a') return own;
      const lost$ = throwError(() => new Error('lost'));
      return {
        ...own,
        load$: () => (isLost && end === 'loses its loads' ? lost$ : own.load$()),
        append$: (...messages) => {
          isLost = true;
          const after$ = end === 'hangs' ? NEVER : EMPTY;
          return concat(own.append$(...messages), after$);
        },
      };
    };
    const files = filesInMemory({ memory: faulty, maxTotalBytes: 100 });
    expect(await written(files, 'a', 'x'.repeat(90))).toBeUndefined();
    expect(await written(files, 'b', 'x'.repeat(11))).toMatchObject({ code: 'tooLarge' });
    end = 'hangs';
    files.write$('a', 'x'.repeat(20), 'left').subscribe().unsubscribe();
    end = 'completes';
    expect(await written(files, 'b', 'x'.repeat(81))).toMatchObject({ code: 'tooLarge' });
    expect(await written(files, 'b', 'x'.repeat(80))).toBeUndefined();
  });

  it('a write that hangs holds up those of its file only, and its bytes are taken', async () => {
    const memory = inProcessMemory();
    const hanging = (id: string): Memory =>
      id.endsWith('/stuck') ? { ...memory(id), append$: () => NEVER } : memory(id);
    const files = filesInMemory({ memory: hanging, maxTotalBytes: 2_000 });
    const stuck = files.write$('stuck', 'x'.repeat(900), 'k').subscribe();
    const writes = Array.from({ length: 1_100 }, (_, n) => files.write$(`${n}`, 'x', 'k'));
    await lastValueFrom(forkJoin(writes.map((write$) => write$.pipe(toArray()))));
    expect(await written(files, 'more', 'x')).toMatchObject({ code: 'tooLarge' });
    stuck.unsubscribe();
    expect(await written(files, 'more', 'x'.repeat(900))).toBeUndefined();
  });

  it('is shown to the model; results of tools count, and stay if they do not fit', async () => {
    const files = filesInMemory({ maxTotalBytes: 1_000 });
    const large = tool({ name: 'large', description: 'L.', run: () => 'x'.repeat(600) });
    const write = toolCall('write_file', { path: 'a', content: 'x'.repeat(500) }, 'w');
    const model = scriptedModel(
      [toolCall('large', {}, 'one')],
      [write],
      [toolCall('large', {}, 'two')],
      [text('Done.')],
    );
    const use = [fileSystem(files, { offloadAbove: 500 })];
    await createAgent({ model, tools: [large], use }).call('Go.');
    const shown = model.requests.map(({ messages }) => messages.slice(-1).map(shownIn).join());
    expect(shown[1]).toContain('was moved to the file');
    expect(shown[2]).toMatch(
      /more than 1000 bytes, which is their limit\. Write up to 400 bytes, or/u,
    );
    expect(shown[3]).toMatch(/^\[It could not be moved to a file: .*1000 bytes.*\]\nx{600}$/u);
  });

  it.each([0, 1.5, '5'])('refuses %j', (maxTotalBytes) => {
    expect(() => filesInMemory({ maxTotalBytes } as never)).toThrow("'maxTotalBytes'");
    expect(() => filesOnDisk(newDirectory(), { maxTotalBytes } as never)).toThrow(
      "'maxTotalBytes'",
    );
  });
});

describe('T25: every tool by which a model can write has a limit, which its error names', () => {
  const long = 'x'.repeat(100_001);
  const plan = { goal: 'Much.', steps: Array.from({ length: 51 }, (_, n) => `step ${n}`) };
  const sandbox = { ...filesInMemory(limits), language: 'Any.', run$: () => EMPTY };
  it.each([
    ['write_file', { path: 'a', content: 'x'.repeat(41) }, 'the limit is 40'],
    ['write_file', { path: 'x'.repeat(1_025), content: '' }, '1024'],
    ['edit_file', { path: 'a', oldText: 'b', newText: 'x'.repeat(41) }, 'the limit is 40'],
    ['search_files', { query: 'x'.repeat(501) }, '500'],
    ['run_code', { code: long }, '100000'],
    ['task', { agent: 'general', task: long }, '100000'],
    ['create_plan', plan, 'up to 50 steps'],
    ['record_memory', { text: 'x'.repeat(2_001) }, '2000'],
    ['retrieve_memory', { query: 'x'.repeat(1_001) }, '1000'],
    ['forget_memory', { ids: Array.from({ length: 21 }, (_, n) => `${n}`) }, '20'],
    ['search_tools', { query: 'x'.repeat(1_001) }, '1000'],
    ['read_skill', { name: 'x'.repeat(65) }, '64'],
  ])('%s (%#)', async (name, input, words) => {
    await lastValueFrom(sandbox.write$('a', 'b', `${(count += 1)}`));
    const model = scriptedModel([toolCall(name, input)], [text('Done.')]);
    const refunds = { name: 'refunds', description: 'How to refund.', instructions: 'Ask.' };
    const other = tool({ name: 'other', description: 'O.', run: () => 'o' });
    const own = { model, tools: [other], use: [searchTools({ above: 0 })] };
    const remembering = withLongTermMemory(own, {
      ...{ memory: inProcessLongTermMemory(), mode: 'agent', forgetTool: true },
    });
    const agent = deepAgent({ ...remembering, files: sandbox, skills: [refunds] });
    const { toolCalls } = await agent.call('Go.', { metadata: { userId: 'ada' } });
    expect(toolCalls[0]).toMatchObject({
      isError: true,
      output: expect.stringContaining(words),
    });
  });

  it('a longer line of a plan is cut, also in one step', async () => {
    const model = scriptedModel(
      [toolCall('create_plan', { goal: long, steps: [long] })],
      [toolCall('update_step', { step: 1, status: 'done', outcome: long })],
      [text('Done.')],
    );
    await deepAgent({ model }).call('Go.');
    expect(JSON.stringify(model.requests[2]?.messages.at(-1)).length).toBeLessThan(5_000);
  });
});
