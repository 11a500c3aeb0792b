import { describe, expect, it } from '@jest/globals';
import { existsSync, readFileSync } from 'node:fs';
import { concat, from, map, of, throwError, timer } from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import fc from 'fast-check';
import type { ModelChunk } from '../../models/model.js';
import { createAgent, MillraceError, type Model, tool } from '../../index.js';
import {
  cassette,
  finish,
  lentContext,
  marbles,
  modelContract,
  scriptedModel,
  text,
} from '../index.js';
import {
  asking,
  chunksOf,
  isolate,
  key,
  never,
  newFile,
  recordedBy,
  stored,
} from './cassette.test-support.js';

isolate();

describe('secrets', () => {
  it('are not written, wherever they are, and the redacted call replays', async () => {
    const file = newFile();
    const show = tool({
      name: 'show',
      description: 'Shows.',
      run: () => `password hunter2, ${key}`,
    });
    const ask = (model: Model) =>
      createAgent({ model, tools: [show], instructions: `Your key is ${key}.` }).call('hunter2?');
    const pieces = [key.slice(0, 5), key.slice(5, 9), key.slice(9)];
    const json = JSON.stringify({ key, hunter2: 1 });
    const script = [
      [
        ...pieces.map(text),
        text(' is it.'),
        { type: 'toolCall', index: 0, id: 't1', name: 'show', json: json.slice(0, 20) },
        { type: 'toolCall', index: 0, json: json.slice(20) },
      ] as const,
      concat(
        of(text('hun')),
        throwError(() => new MillraceError('server', `Wrong key ter2 ${key}.`, { requestId: key })),
      ),
    ];
    const options = { redact: ['hunter2', /ter2/] };
    await ask(cassette(file, scriptedModel(...script), options)).catch(() => undefined);
    cassette(file, never).verify();
    const written = readFileSync(file, 'utf8');
    expect(written).not.toMatch(/hunter2|ter2|Abc123|Def456|Ghi789|Jkl012/);
    expect(written).toContain('Your key is [redacted].');
    expect(
      stored(file)
        .recordings[0].events.slice(0, 4)
        .map(([, it]: [number, unknown]) => it),
    ).toEqual(['[redacted]', '', '', ' is it.']);
    const replay = cassette(file, never, options);
    await expect(ask(replay)).rejects.toMatchObject({ code: 'server', requestId: '[redacted]' });
    replay.verify();
  });

  it.each([
    ['a key of a provider', key],
    ['a token of GitHub', ['ghp', 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'].join('_')],
    ['a key of AWS', ['AKIA', 'IOSFODNN7EXAMPLE'].join('')],
    ['a key of Google', ['AIza', 'SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q'].join('')],
    ['a token', 'Bearer abc123.def-456_ghi'],
    ['a JSON Web Token', ['eyJhbGciOiJIUzI1NiJ9', 'eyJzdWIiOiIxMjM0In0', 'c2lnbmF0dXJl'].join('.')],
    ['a token of letters', ['Bearer', 'abcdefghijklmnop'].join(' ')],
    ['a password in a URL', 'postgres://user:pa55word@host/db'],
    ['a password with @', 'postgres://user:p@55word@host/db?by=a@b'],
    ['a password without a user', 'redis://:pa55word1@host'],
    ['a secret of a webhook', ['whsec', 'abcDEF1234567890ab/cdef+12'].join('_')],
    ['a token of OAuth', ['ya29', 'a0AfH6SMBabcdefghijk1234567'].join('.')],
    ['a token of an app', ['xapp', '1', 'A012345', 'abcdef1234567890'].join('-')],
    ['a key of mail', ['SG', 'abcdefghijklmnop1234', 'wxyz0123456789ABCDEF'].join('.')],
    ['another key of mail', ['key', '0123456789abcdef0123456789abcdef'].join('-')],
    ['a key of traces', ['lsv2', 'pt', '0123456789abcdef', '0123456789'].join('_')],
    ['a key of notebooks', ['dapi', '0123456789abcdef0123456789abcdef'].join('')],
    ['a signature', ['X-Amz-Signature', '0123456789abcdef0123456789'].join('=')],
    ['a parameter', ['api_key', '0123456789abcdef0123456789'].join('=')],
    ['a parameter in one word', ['apikey', '0123456789abcdef0123456789'].join('=')],
    [
      'a private key',
      ['-----BEGIN RSA PRIVATE', ' KEY-----\nMIIabc\n-----END RSA PRIVATE', ' KEY-----'].join(''),
    ],
  ])('of a known shape are found: %s', async (_, secret) => {
    const file = await recordedBy(scriptedModel([text(`It is ${secret}`)]), [asking(secret)]);
    expect(readFileSync(file, 'utf8').match(/\[redacted\]/g)).toHaveLength(2);
    const long = secret.match(/[\w.-]{8,}/g) ?? [];
    for (const part of long.filter((it) => /\d/.test(it))) {
      expect(readFileSync(file, 'utf8')).not.toContain(part);
    }
  });

  it('are the whole password, but no more of the URL', async () => {
    const file = await recordedBy(scriptedModel([text('postgres://u:p@55@word@host/db?by=a@b')]));
    const [{ events }] = stored(file).recordings;
    expect(events[0][1]).toBe('postgres://u:[redacted]@host/db?by=a@b');
  });

  it('do not include ordinary words', async () => {
    const words =
      'sk-learn-is-a-library, https://example.org/a:b@c, Bearer of bad news, task-2026-planning-item, Basic internationalization, api_key=process.env.THE_API_KEY, ["http://localhost:8080","a@b.org"]';
    const file = await recordedBy(scriptedModel([text(words)]));
    expect(readFileSync(file, 'utf8')).toContain(JSON.stringify(words));
  });

  it('are refused as patterns that break requests', async () => {
    const model = cassette(newFile(), scriptedModel([]), { redact: 'user' });
    await expect(chunksOf(model)).rejects.toMatchObject({ code: 'config' });
  });

  it.each(['stop', 'finish', 'completed'])(
    'are refused as patterns that break answers: %s',
    async (redact) => {
      const file = newFile();
      const model = cassette(file, scriptedModel([text('Hello')]), { redact });
      await expect(chunksOf(model)).rejects.toMatchObject({
        code: 'config',
        message: `cassette() cannot store an answer. Its chunks are invalid, or 'redact' matches more than secrets, such as types of chunks.`,
      });
      expect(existsSync(file)).toBe(false);
    },
  );
});

describe('for any model', () => {
  const words = fc.string({ unit: 'binary', maxLength: 20 });
  const chunk = fc.oneof(
    words.map(text),
    fc.record({ type: fc.constant('thinking' as const), text: words, signature: words }),
    fc.record({
      type: fc.constant('toolCall' as const),
      index: fc.nat(2),
      name: words,
      json: words,
    }),
    fc.record({ type: fc.constant('toolCall' as const), name: words, input: fc.jsonValue() }),
    fc.record({ type: fc.constant('usage' as const), usage: fc.record({ inputTokens: fc.nat() }) }),
    fc.record({ type: fc.constant('restart' as const), why: words }),
  );
  const timed = fc.array(fc.tuple(fc.nat(50_000), chunk), { maxLength: 12 });

  const emitted = (model: Model, scheduler: TestScheduler): readonly unknown[] => {
    const seen: unknown[] = [];
    model.stream$(asking('?'), lentContext({ scheduler })).subscribe({
      next: (it) => seen.push([scheduler.now(), it]),
      complete: () => seen.push([scheduler.now(), 'completed']),
    });
    scheduler.flush();
    return seen;
  };

  it('comes again at the same times', () => {
    fc.assert(
      fc.property(timed, (steps) => {
        const file = newFile();
        const model = (scheduler: TestScheduler): Model => ({
          name: 'scripted',
          stream$: () =>
            concat(...steps.map(([ms, it]) => timer(ms, scheduler).pipe(map(() => it)))),
        });
        let live: readonly unknown[] = [];
        marbles(({ scheduler }) => {
          live = emitted(cassette(file, model(scheduler)), scheduler);
        });
        cassette(file, never).verify();
        marbles(({ scheduler }) => {
          const replay = cassette(file, never, { speed: 1 });
          expect(emitted(replay, scheduler)).toEqual(JSON.parse(JSON.stringify(live)));
        });
      }),
      { numRuns: 200 },
    );
  });

  it('has no secret in the file, however it is split', () => {
    const pieces = fc.array(fc.nat(40), { maxLength: 6 }).map((cuts) => {
      const whole = `It is ${key}, is it not?`;
      const places = [0, ...cuts.toSorted((a, b) => a - b), whole.length];
      return places.slice(1).map((end, at) => whole.slice(places[at], end));
    });
    const kinds = fc.constantFrom<((piece: string) => ModelChunk)[]>(
      text,
      (piece) => ({ type: 'thinking', text: piece }),
      (json) => ({ type: 'toolCall', index: 1, json }),
    );
    return fc.assert(
      fc.asyncProperty(pieces, kinds, async (parts, kind) => {
        const file = await recordedBy(scriptedModel(parts.map(kind)));
        const { recordings } = stored(file);
        const written = recordings[0].events
          .map(([, it]: [number, string | { text?: string; json?: string }]) =>
            typeof it === 'string' ? it : (it.text ?? it.json ?? ''),
          )
          .join('');
        expect(written).toBe('It is [redacted], is it not?');
      }),
      { numRuns: 200 },
    );
  });

  const obliging: Model = { name: 'obliging', stream$: () => from([text('4'), finish()]) };
  for (const { name, run } of modelContract(() => cassette(newFile(), obliging))) {
    it(`while it is recorded, a model ${name}`, run);
  }
});
