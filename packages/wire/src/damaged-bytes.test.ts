import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  doneEvent,
  event,
  exchangeWith,
  finishEvent,
  outcomeOf,
  respond,
  textEvent,
} from './wire.test-support.js';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** The bytes of a body in which `§` stands for a byte that is not UTF-8. */
const damaged = (body: string): Uint8Array =>
  Uint8Array.from(
    body.split('§').flatMap((part, at) => [...(at === 0 ? [] : [0xff]), ...bytesOf(part)]),
  );

const piecesOf = (bytes: Uint8Array, size: number): readonly Uint8Array[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.slice(at * size, (at + 1) * size),
  );

const play = (bytes: Uint8Array, size = bytes.length) =>
  outcomeOf(exchangeWith(respond(piecesOf(bytes, size))));

const call = (json: string): string =>
  event({ type: 'toolCall', index: 0, id: 'a', name: 'f', json });
const end = finishEvent + doneEvent;

describe('X47: an answer with damage', () => {
  it.each([
    ['in arguments', call('{"a":"§"}') + end],
    ['in the name of a field', call('{}').replace('"json"', '"j§on"') + end],
    [
      'in the type of an event',
      call('{"a":1') + call('0').replace('toolCall', 'tool§') + call('}') + end,
    ],
    ['in the name of a line', call('{"a":1') + call('0').replace('data', 'd§ta') + call('}') + end],
    ['in a comment', call('{}') + ': §\n\n' + end],
    ['as a line that is no field', call('{"a":1') + ' ' + call('0') + call('}') + end],
    ['as a mark of byte order', call('{"a":1') + '\uFEFF' + call('0') + call('}') + end],
    ['in text before the call', textEvent('§') + call('{}') + end],
    ['in text after the call', call('{}') + textEvent('§') + end],
    ['in an event that is not JSON then', call('{}').replace('{', '§') + call('{}') + end],
    [
      'in a JSON document',
      JSON.stringify({
        chunks: [
          { type: 'toolCall', name: 'f', json: '"§"' },
          { type: 'finish', finish: 'stop' },
        ],
      }),
    ],
  ])('X47: fails with its call, to be tried again: %s', async (_, body) => {
    for (const size of [undefined, 1, 5]) {
      const { chunks, error } = await play(damaged(body), size);
      expect(error).toMatchObject({ code: 'connection', retryable: true });
      expect(chunks.some(({ type }) => type === 'finish')).toBe(false);
    }
  });

  it.each([
    ['after its end', call('{}') + end + textEvent('§'), 'finish'],
    ['in words of a proxy', 'upstream: slow\n' + call('{}') + end, 'finish'],
    ['in a field of a proxy', 'trace: {"id":1}\n' + call('{}') + end, 'finish'],
    ['in a log line', call('{}') + '[proxy] retry {"n":1}\n' + end, 'finish'],
    ['and no call', textEvent('a§b') + end, 'finish'],
  ])('X47: is complete if they come %s', async (_, body, last) => {
    for (const size of [undefined, 1, 5]) {
      const { chunks, error } = await play(damaged(body), size);
      expect([error, chunks.at(-1)?.type]).toEqual([undefined, last]);
    }
  });

  it('X47: marks its text as damaged, once', async () => {
    const { chunks } = await play(damaged(textEvent('a§') + textEvent('b§') + end));
    expect(chunks).toEqual([
      { type: 'text', text: '', isDamaged: true },
      { type: 'text', text: 'a\uFFFD' },
      { type: 'text', text: 'b\uFFFD' },
      { type: 'finish', finish: 'stop' },
    ]);
  });

  it('X47: has the same outcome wherever it is cut, with any line ending', async () => {
    const parts = [textEvent('é€😀'), textEvent('\uFFFD'), call('{"a":"é"}'), ': ping\n\n'];
    const part = fc.constantFrom(...parts, textEvent('§'), ': §\n\n', 'd§ta: x\n\n');
    const body = fc.array(part, { maxLength: 5 });
    const size = fc.integer({ min: 1, max: 40 });
    await fc.assert(
      fc.asyncProperty(body, fc.constantFrom('\n', '\r\n'), size, async (list, feed, cut) => {
        const bytes = damaged([...list, end].join('').replaceAll('\n', feed));
        const isWrong =
          list.some((it) => it.includes('§')) && list.some((it) => it.includes('toolCall'));
        const [whole, inPieces] = [await play(bytes), await play(bytes, cut)];
        expect(inPieces).toEqual(whole);
        expect(whole.error?.code).toBe(isWrong ? 'connection' : undefined);
      }),
    );
  });
});
