import { describe, expect, it, jest } from '@jest/globals';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { concatWith, ignoreElements, NEVER, of, Subject } from 'rxjs';
import type { ModelReport, ModelRequest } from '../../models/model.js';
import type { Model } from '../../index.js';
import { cassette, lentContext, scriptedModel, text } from '../index.js';
import {
  asking,
  chunksOf,
  folder,
  isolate,
  never,
  newFile,
  recordedBy,
  stored,
} from './cassette.test-support.js';

isolate();

describe('the file of a cassette', () => {
  it('appears immediately, in a folder of its own, and may be a URL', async () => {
    const file = join(folder, 'deep', 'down', 'one.json');
    await chunksOf(cassette(pathToFileURL(file), scriptedModel([text('a')])));
    expect(readdirSync(join(folder, 'deep', 'down'))).toEqual(['one.json']);
    expect(statSync(join(folder, 'deep')).mode & 0o77).toBe(0);
    expect(statSync(file).mode & 0o77).toBe(0);
  });

  it('is written and formatted in proportion to the requests', async () => {
    const fs = process.getBuiltinModule('node:fs');
    const cost = async (requests: number) => {
      const written = [jest.spyOn(fs, 'writeFileSync'), jest.spyOn(fs, 'writeSync')];
      const formatted = jest.spyOn(JSON, 'stringify');
      const words = Array.from({ length: requests }, (_, at) => `${at} ${'é'.repeat(500)}`);
      const script = words.map((it) => [text(it)]);
      await recordedBy(
        scriptedModel(...script),
        words.map((it) => asking(it)),
      );
      const bytes = written.flatMap(({ mock }) => mock.calls.map(([, data]) => `${data}`.length));
      const costs = [bytes.reduce((sum, each) => sum + each, 0), formatted.mock.calls.length];
      jest.restoreAllMocks();
      return costs;
    };
    const [few, many] = [await cost(20), await cost(80)];
    many.forEach((each, at) => expect(each).toBeLessThan(5 * (few[at] ?? 0)));
  });

  it('has its requests in the order in which they were sent, however they end', async () => {
    const ends = ['a', 'b', 'c'].map((words) => ({ words, end$: new Subject<void>() }));
    const answers = ends.map(({ words, end$ }) =>
      end$.pipe(ignoreElements(), concatWith(of(text(words)))),
    );
    const file = newFile();
    const model = cassette(file, scriptedModel(...answers, [text('d')]));
    const first = asking('a');
    const requests = [
      first,
      asking('b'),
      { messages: [...first.messages, ...asking('c').messages] },
    ];
    const all = requests.map((request) => chunksOf(model, request));
    for (const at of [2, 0, 1]) ends[at]?.end$.complete();
    await Promise.all(all);
    const last = { messages: [...(requests[2]?.messages ?? []), ...asking('d').messages] };
    await chunksOf(model, last);
    model.verify();
    const { recordings } = stored(file);
    expect(recordings.map(({ events }: { events: unknown[][] }) => events[0]?.[1])).toEqual([
      ...['a', 'b', 'c', 'd'],
    ]);
    expect(
      recordings.map(({ request }: { request: { extends?: number } }) => request.extends),
    ).toEqual([undefined, undefined, 0, 2]);
    const replay = cassette(file, never);
    expect(await chunksOf(replay, last)).toMatchObject([text('d'), { type: 'finish' }]);
  });

  it('is written again if it was removed or changed while recording', async () => {
    const file = newFile();
    const model = cassette(file, scriptedModel([text('a')], [text('b')], [text('c')]));
    await chunksOf(model, asking('a'));
    rmSync(file);
    await chunksOf(model, asking('b'));
    writeFileSync(file, 'Not a cassette.');
    await chunksOf(model, asking('c'));
    expect(stored(file).recordings).toHaveLength(3);
    expect(readFileSync(file, 'utf8')).toMatch(/\n {2}\]\n\}\n$/);
  });

  it('is not replaced if it cannot be written: the call fails', async () => {
    const place = newFile();
    mkdirSync(join(place, 'inside'), { recursive: true });
    const model = cassette(place, scriptedModel([text('a')]), { mode: 'record' });
    await expect(chunksOf(model)).rejects.toMatchObject({
      code: 'store',
      message: expect.stringContaining('Cannot write the cassette'),
    });
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    const below = newFile();
    writeFileSync(below, '');
    const inFile = cassette(join(below, 'x.json'), scriptedModel([text('a')]), { mode: 'record' });
    await expect(chunksOf(inFile)).rejects.toMatchObject({ code: 'store' });
    const warnings: ModelReport[] = [];
    const silent: Model = { name: 'm', stream$: () => NEVER };
    const other = join(place, 'inside');
    mkdirSync(join(other, 'further'));
    cassette(other, silent, { mode: 'record' })
      .stream$(asking('?'), lentContext({ report: (it) => warnings.push(it) }))
      .subscribe()
      .unsubscribe();
    expect(warnings).toMatchObject([{ type: 'warning' }]);
  });

  const recording = { model: 'm', request: { messages: [] }, events: [], end: [0, 'completed'] };
  const one = (change: object) =>
    JSON.stringify({ version: 1, recordings: [{ ...recording, ...change }] });
  const nested = (depth: number): string => (depth === 0 ? '1' : `[${nested(depth - 1)}]`);
  const bomb = [
    {
      ...recording,
      request: {
        messages: Array.from({ length: 2_000 }, () => ({ id: 'a', role: 'user', content: [] })),
      },
    },
    ...Array.from({ length: 600 }, () => ({ ...recording, request: { extends: 0, messages: [] } })),
  ];
  it.each([
    ['nothing', '', /it is not JSON/],
    ['half of one', one({}).slice(0, -9), /it is not JSON/],
    ['something else', '{"name":"core","version":"1.0.0"}', /it is not a cassette/],
    ['null', 'null', /it is not a cassette/],
    [
      'one of another version',
      '{"version":2,"recordings":[]}',
      /it has format version 2, but this release of Millrace reads only format version 1/,
    ],
    ['deep nesting', `{"version":1,"recordings":${nested(200)}}`, /nested too deeply/],
    ['a recording that is none', '{"version":1,"recordings":[3]}', /recording 1 is not an object/],
    ['a model without a name', one({ model: 3 }), /'model' of recording 1 is invalid/],
    ['messages that are none', one({ request: { messages: [{}] } }), /'request' of recording 1/],
    [
      'a base that is not there',
      one({ request: { extends: 0, messages: [] } }),
      /'request' of recording 1/,
    ],
    [
      'a base by another name',
      one({ request: { extends: '__proto__', messages: [] } }),
      /'request' of recording 1/,
    ],
    ['events that are no list', one({ events: {} }), /'events' of recording 1/],
    ['an unknown chunk', one({ events: [[0, { type: 'magic' }]] }), /event 1 of recording 1/],
    [
      'a chunk of a prototype',
      one({ events: [[0, { type: 'constructor' }]] }),
      /event 1 of recording 1/,
    ],
    [
      'a chunk of another type',
      one({
        events: [
          [0, 'a'],
          [0, { type: 'finish', finish: 3 }],
        ],
      }),
      /event 2 of/,
    ],
    ['a time that no timer has', one({ events: [[-1, 'a']] }), /event 1 of recording 1/],
    [
      'an error of an unknown code',
      one({ end: [0, { error: { code: 'x', message: '' } }] }),
      /'end' of recording 1/,
    ],
    ['no end', one({ end: null }), /'end' of recording 1/],
    ['more messages than fit', JSON.stringify({ version: 1, recordings: bomb }), /it is too large/],
  ])('is refused if it holds %s', (_, content, problem) => {
    const file = newFile();
    writeFileSync(file, content);
    const error = caught(() => cassette(file, never));
    expect(error).toMatchObject({ code: 'config', message: expect.stringMatching(problem) });
    expect(error).toMatchObject({ message: expect.stringContaining('delete it to record again') });
  });

  it('does no harm with __proto__', async () => {
    const file = newFile();
    const input = '{"__proto__":{"polluted":true}}';
    const events = `[[0,{"type":"toolCall","name":"f","input":${input},"__proto__":{"id":"x"}}]]`;
    const content = `{"__proto__":{"mode":"record"},"version":1,"recordings":[{"__proto__":{"end":1},"model":"scripted","request":${JSON.stringify(stableOf('?'))},"events":${events},"end":[0,"completed"]}]}`;
    writeFileSync(file, content);
    const [chunk] = await chunksOf(cassette(file, never));
    expect(chunk).toMatchObject({ type: 'toolCall', name: 'f' });
    expect(chunk && 'id' in chunk && Object.hasOwn(chunk, 'id')).toBe(false);
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
  });

  it('is refused if it is a folder', () => {
    const place = newFile();
    mkdirSync(place);
    expect(() => cassette(place, never)).toThrow(/Cannot read the cassette .*: it is not a file/);
  });
});

const stableOf = (words: string): ModelRequest => ({
  messages: [{ id: 'm1', role: 'user', content: [{ type: 'text', text: words }] }],
});

const caught = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};
